# MPI tests and examples; included by Tests.cmake where there is MPI.

execute_process(COMMAND id -u OUTPUT_VARIABLE uid OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpirun_version ERROR_QUIET)
if(mpirun_version MATCHES "Open MPI|OpenRTE")
    # More ranks than cores, and no UCX below MPI: the UCX under test is our own. Without vader's
    # single copy no ptrace right is needed, which containers do not give.
    set(mpirun_flags --oversubscribe --bind-to none --mca mpi_yield_when_idle 1
        --mca pml ob1 --mca btl self,vader,tcp --mca btl_vader_single_copy_mechanism none
        --mca osc ^ucx)
    if(uid STREQUAL "0")
        list(APPEND mpirun_flags --allow-run-as-root)
    endif()
endif()

# meshcoll_add_mpi_test(<name> <program> RANKS <n> [ARGS …] [ENV var=value …] [TIMEOUT s] [SMOKE])
# Runs tests/mpi/<program>.c on n ranks of this machine. It counts as one process for ctest --parallel: most of it is
# mpirun's start, which leaves cores idle.
function(meshcoll_add_mpi_test name program)
    cmake_parse_arguments(PARSE_ARGV 2 arg "SMOKE" "RANKS;TIMEOUT" "ARGS;ENV")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_RANKS)
        message(FATAL_ERROR "meshcoll_add_mpi_test(${name}): expected RANKS <n> [ARGS …] "
                "[ENV …] [TIMEOUT s] [SMOKE], got \"${ARGN}\"")
    endif()
    if(NOT TARGET mpi_${program})
        message(FATAL_ERROR "meshcoll_add_mpi_test(${name}): there is no tests/mpi/${program}.c")
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    set(labels mpi)
    if(arg_SMOKE)
        list(APPEND labels smoke)
    endif()

    add_test(NAME mpi.${name} COMMAND ${MPIEXEC_EXECUTABLE} -n ${arg_RANKS} ${mpirun_flags}
             $<TARGET_FILE:mpi_${program}> ${arg_ARGS})
    set_tests_properties(mpi.${name} PROPERTIES
        LABELS "${labels}" TIMEOUT ${arg_TIMEOUT}
        SKIP_RETURN_CODE ${skip_code} ENVIRONMENT "${sanitizer_mpi_env};${arg_ENV}"
        ${sanitizer_fails})
    set_property(GLOBAL APPEND PROPERTY meshcoll_mpi_registered ${program})
endfunction()

file(GLOB mpi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/mpi/test_*.c)
foreach(source IN LISTS mpi_sources)
    get_filename_component(name ${source} NAME_WE)
    meshcoll_add_test_program(mpi_${name} ${name} ${source} mpi)
    target_link_libraries(mpi_${name} PRIVATE meshcoll_test_support_mpi)
endforeach()
add_subdirectory(${PROJECT_SOURCE_DIR}/tests/mpi)

# The examples are right when they say so by their exit status.
file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source IN LISTS example_sources)
    get_filename_component(name ${source} NAME_WE)
    if(TARGET example_${name})
        add_test(NAME example.${name} COMMAND ${MPIEXEC_EXECUTABLE} -n 4 ${mpirun_flags}
                 $<TARGET_FILE:example_${name}>)
        set_tests_properties(example.${name} PROPERTIES LABELS mpi TIMEOUT 60)
        if(NOT name STREQUAL "mpi")     # which has a mesh of two ranks
            set_tests_properties(example.${name} PROPERTIES ENVIRONMENT "MESHCOLL_MESH=box=2,gpu=2;MESHCOLL_CALIBRATE=off")
        endif()
    endif()
endforeach()

# A program without a row in the table still runs, on 4 ranks.
get_property(registered GLOBAL PROPERTY meshcoll_mpi_registered)
foreach(source IN LISTS mpi_sources)
    get_filename_component(name ${source} NAME_WE)
    if(NOT name IN_LIST registered)
        meshcoll_add_mpi_test(${name} ${name} RANKS 4)
    endif()
endforeach()
