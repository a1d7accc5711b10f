# meshcoll_add_program(<target> <name> <folder> [MPI] [EXCEPT <folder>/]): one program of all C files below
# a folder, with the internal functions at hand; MPI: and those of libmeshcoll-mpi. An empty folder gives no
# program.
function(meshcoll_add_program target name folder)
    cmake_parse_arguments(PARSE_ARGV 3 arg "MPI" "EXCEPT" "")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
    if(arg_EXCEPT)
        list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${arg_EXCEPT}")
    endif()
    if(NOT sources OR NOT TARGET meshcoll_internal)
        return()
    endif()
    add_executable(${target} ${sources})
    meshcoll_compile_options(${target})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    target_compile_definitions(${target} PRIVATE MESHCOLL_VERSION="${PROJECT_VERSION}")
    if(arg_MPI)
        target_link_libraries(${target} PRIVATE meshcoll_internal_mpi)
    else()
        target_link_libraries(${target} PRIVATE meshcoll_internal)
    endif()
endfunction()

# meshcoll_add_examples(<folder>): one program per C file, on the public API only.
function(meshcoll_add_examples folder)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
    if(NOT TARGET meshcoll_mpi)
        return()
    endif()
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        add_executable(example_${name} ${source})
        meshcoll_compile_options(example_${name})
        set_target_properties(example_${name} PROPERTIES
            OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
        target_link_libraries(example_${name} PRIVATE meshcoll::meshcoll-mpi m)
    endforeach()
endfunction()
