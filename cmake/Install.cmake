# Libraries, headers, programs, man pages, CMake package and pkg-config files.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/meshcoll)

install(TARGETS meshcoll EXPORT meshcollTargets)
foreach(header IN ITEMS meshcoll callback datatypes env fault gpu group message)
    list(APPEND public_headers include/meshcoll/${header}.h)
endforeach()
install(FILES ${public_headers}
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/meshcoll)
if(TARGET meshcoll_mpi)
    # A component, which a build for another MPI adds to an installation.
    install(TARGETS meshcoll_mpi EXPORT meshcollMpiTargets COMPONENT mpi)
    install(FILES include/meshcoll/mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/meshcoll COMPONENT mpi)
    install(EXPORT meshcollMpiTargets NAMESPACE meshcoll:: DESTINATION ${package_dir} COMPONENT mpi
        FILE meshcoll-${MESHCOLL_MPI_NAME}Targets.cmake)
endif()
if(TARGET meshcoll_bench_mpi)
    install(TARGETS meshcoll_bench_mpi DESTINATION ${CMAKE_INSTALL_LIBDIR}/meshcoll)
endif()
foreach(program IN ITEMS meshcoll_tool meshcoll_bench)
    if(TARGET ${program})
        install(TARGETS ${program})
    endif()
endforeach()

file(GLOB man_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.[17])
foreach(page IN LISTS man_pages)
    string(REGEX MATCH "[17]$" man_section ${page})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${man_section})
endforeach()

install(FILES docs/completion/meshcoll.bash RENAME meshcoll
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES docs/completion/_meshcoll DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

# Pages that headers and errors name, and the programs that show how it is called.
set(pages ${PROJECT_BINARY_DIR}/pages)
file(RELATIVE_PATH headers ${CMAKE_INSTALL_FULL_DOCDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
install(CODE "set(source [[${PROJECT_SOURCE_DIR}]])\nset(pages [[${pages}]])\nset(headers [[${headers}]])
set(with_mpi [[${MESHCOLL_HAVE_MPI}]])\ninclude([[${PROJECT_SOURCE_DIR}/cmake/Pages.cmake]])")
install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN __pycache__ EXCLUDE)

install(EXPORT meshcollTargets NAMESPACE meshcoll:: DESTINATION ${package_dir})
configure_package_config_file(cmake/meshcollConfig.cmake.in
    ${PROJECT_BINARY_DIR}/meshcollConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/meshcollConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/meshcollConfig.cmake
        ${PROJECT_BINARY_DIR}/meshcollConfigVersion.cmake DESTINATION ${package_dir})

# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/meshcoll.pc.in ${PROJECT_BINARY_DIR}/meshcoll.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/meshcoll.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET meshcoll_mpi)
    set(pc ${PROJECT_BINARY_DIR}/meshcoll-${MESHCOLL_MPI_NAME}.pc)
    configure_file(cmake/meshcoll-mpi.pc.in ${pc} @ONLY)
    install(FILES ${pc} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT mpi)
endif()
