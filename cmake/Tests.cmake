# Tests, found by folder:
#   tests/unit/test_*.c         one Criterion program each, label "unit"
#   tests/mpi/test_*.c          one plain MPI program each, run as tests/mpi/CMakeLists.txt says,
#                               label "mpi" (and "smoke": the few which run under sanitizers too)
#   tests/threads/test_*.c      one plain program each, ranks are threads, label "threads": what the
#                               thread sanitizer watches
#   tests/device                the device executor's text on the host, as TestsDevice.cmake says, label "device"
#   tests/{cli,lab}/test_*.sh   scripts; $MESHCOLL_BUILD_DIR says where the programs are, label =
#                               folder; $MESHCOLL is the command
#   tests/faults/run.py         jobs of tests/faults/job.c in which something goes wrong, label "faults"
#   tests/install/run.sh        label "install"
#   tests/status/job.c          what tests/cli/test_status.sh starts
#   tests/support/*.c           linked into every unit and MPI test; support/mpi/*.c into MPI tests only
# Exit code 77 means skipped: print one line that says why.

set(skip_code 77)

# A sanitizer must fail the test, and must not blame us for what MPI and UCX keep until exit.
# Links are those that a test gives; tests/cli/test_calibrate.sh measures some.
set(sanitizer_env UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 MESHCOLL_CALIBRATE=off)
if(MESHCOLL_SANITIZE)
    list(APPEND sanitizer_env MESHCOLL_KILLS=2)
endif()
set(sanitizer_mpi_env ${sanitizer_env})
if(MESHCOLL_SANITIZE STREQUAL "address,undefined")
    list(APPEND sanitizer_mpi_env ASAN_OPTIONS=detect_leaks=0)
endif()
# Leaks are found when Criterion has counted the test already: what is printed decides.
set(sanitizer_fails)
if(MESHCOLL_SANITIZE)
    set(sanitizer_fails
        FAIL_REGULAR_EXPRESSION "ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|: runtime error: ")
endif()

if(NOT TARGET meshcoll_internal)
    return()
endif()

file(GLOB support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.c)
if(support_sources)
    add_library(meshcoll_test_support STATIC ${support_sources})
    meshcoll_compile_options(meshcoll_test_support)
    target_include_directories(meshcoll_test_support PUBLIC ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(meshcoll_test_support PUBLIC meshcoll_gpu meshcoll_simulate)
endif()

file(GLOB mpi_support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/mpi/*.c)
if(MESHCOLL_HAVE_MPI)
    add_library(meshcoll_test_support_mpi STATIC ${mpi_support_sources})
    meshcoll_compile_options(meshcoll_test_support_mpi)
    target_link_libraries(meshcoll_test_support_mpi PUBLIC meshcoll_test_support meshcoll_internal_mpi)
endif()

add_library(meshcoll_calm OBJECT ${PROJECT_SOURCE_DIR}/tests/calm.c)
meshcoll_compile_options(meshcoll_calm)

# The library is tested as users get it; its tests compile in half the time with -O1, and run as fast.
function(meshcoll_add_test_program target name source folder)
    add_executable(${target} ${source} $<TARGET_OBJECTS:meshcoll_calm>)
    meshcoll_compile_options(${target})
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${folder})
    target_compile_definitions(${target} PRIVATE MC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    if(TARGET meshcoll_test_support)
        target_link_libraries(${target} PRIVATE meshcoll_test_support)
    endif()
    target_link_libraries(${target} PRIVATE meshcoll_internal)
endfunction()

# Unit tests --------------------------------------------------------------------------------------

file(GLOB unit_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/test_*.c)
foreach(source IN LISTS unit_sources)
    get_filename_component(name ${source} NAME_WE)
    meshcoll_add_test_program(${name} ${name} ${source} unit)
    target_link_libraries(${name} PRIVATE PkgConfig::CRITERION)
    # One process per core at most: ctest runs several of these programs at once.
    add_test(NAME ${name} COMMAND ${name} --jobs=1)
    set_tests_properties(${name} PROPERTIES
        LABELS unit TIMEOUT 600 SKIP_RETURN_CODE ${skip_code} ENVIRONMENT "${sanitizer_env}"
        ${sanitizer_fails})
endforeach()
target_link_options(test_differ PRIVATE -Wl,--wrap=mc_waits_ask,--wrap=mc_monitor_is_joined)

# Ranks of the jobs that tests/cli/test_status.sh asks.
meshcoll_add_test_program(status_job job ${PROJECT_SOURCE_DIR}/tests/status/job.c status)

# Threads: without Criterion, which forks. MPI and UCX are linked, but not run; UCX's hooks in the
# allocator are left out, which run in threads that the sanitizer has already buried.
file(GLOB threads_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/threads/test_*.c)
foreach(source IN LISTS threads_sources)
    get_filename_component(name ${source} NAME_WE)
    meshcoll_add_test_program(threads_${name} ${name} ${source} threads)
    add_test(NAME threads.${name} COMMAND threads_${name})
    set_tests_properties(threads.${name} PROPERTIES
        LABELS threads TIMEOUT 120 SKIP_RETURN_CODE ${skip_code} ENVIRONMENT "${sanitizer_env};UCX_MEM_MMAP_HOOK_MODE=none" ${sanitizer_fails})
endforeach()
set_tests_properties(threads.test_in_flight PROPERTIES LABELS unit) # it has one thread, and no Criterion for callgrind

include(TestsDevice)

set(mpi_sources)
if(MESHCOLL_HAVE_MPI)
    include(TestsMpi)
endif()

# Choices on other processors: what chooses once more, for processors that multiply and add in one and have
# wide vectors. tests/cli/test_alike.sh compares what both choose.
include(CheckCCompilerFlag)
check_c_compiler_flag("-mavx2 -mfma" MESHCOLL_HAVE_FMA)
set(alike_globs)
foreach(folder IN ITEMS base mesh plan ring mst direct doubling compose)
    list(APPEND alike_globs ${PROJECT_SOURCE_DIR}/src/${folder}/*.c)
endforeach()
file(GLOB_RECURSE alike_sources CONFIGURE_DEPENDS ${alike_globs})
foreach(kind IN ITEMS plain fma)
    if(kind STREQUAL "fma" AND NOT MESHCOLL_HAVE_FMA)
        continue()
    endif()
    add_executable(alike_${kind} ${PROJECT_SOURCE_DIR}/tests/alike/choices.c)
    meshcoll_compile_options(alike_${kind})
    set_target_properties(alike_${kind} PROPERTIES
        OUTPUT_NAME choices_${kind} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/alike)
    if(kind STREQUAL "fma")
        target_sources(alike_fma PRIVATE ${alike_sources})
        target_compile_options(alike_fma PRIVATE -O3 -mavx2 -mfma -mtune=haswell)
        meshcoll_alike_options(alike_fma)
        target_compile_definitions(alike_fma PRIVATE MESHCOLL_VERSION="${PROJECT_VERSION}")
        target_include_directories(alike_fma PRIVATE
            ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
        target_link_libraries(alike_fma PRIVATE meshcoll_dependencies)
    else()
        target_include_directories(alike_plain PRIVATE ${PROJECT_SOURCE_DIR}/tests)
        target_link_libraries(alike_plain PRIVATE meshcoll_internal)
    endif()
endforeach()

# Scripts -----------------------------------------------------------------------------------------

set(script_env MESHCOLL_CALIBRATE=off MESHCOLL_BUILD_DIR=${PROJECT_BINARY_DIR} MESHCOLL=${PROJECT_BINARY_DIR}/meshcoll)
foreach(folder IN ITEMS cli lab)
    file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/test_*.sh)
    foreach(script IN LISTS scripts)
        get_filename_component(name ${script} NAME_WE)
        add_test(NAME ${folder}.${name} COMMAND bash ${script}
                 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(${folder}.${name} PROPERTIES
            LABELS ${folder} TIMEOUT 600 SKIP_RETURN_CODE ${skip_code}
            ENVIRONMENT "${sanitizer_mpi_env};${script_env}")
        if(name STREQUAL "test_slower")
            set_tests_properties(${folder}.${name} PROPERTIES RUN_SERIAL ON)
        elseif(folder STREQUAL "lab")
            set_tests_properties(${folder}.${name} PROPERTIES RESOURCE_LOCK lab)
        endif()
    endforeach()
endforeach()

# Faults: scripts/faults.sh plays each more often. On the public API; serial, because it judges seconds.
find_package(Python3 COMPONENTS Interpreter QUIET)
add_executable(fault_job ${PROJECT_SOURCE_DIR}/tests/faults/job.c)
meshcoll_compile_options(fault_job)
set_target_properties(fault_job PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/faults)
target_link_libraries(fault_job PRIVATE meshcoll Threads::Threads)
if(Python3_FOUND)
    add_test(NAME faults COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/faults/run.py)
    set_tests_properties(faults PROPERTIES
        LABELS faults TIMEOUT 600 RUN_SERIAL ON ENVIRONMENT "${script_env}")
endif()

# The long one; serial, because it takes all cores itself.
add_test(NAME verify.all COMMAND bash ${PROJECT_SOURCE_DIR}/tests/cli/verify_all.sh)
set_tests_properties(verify.all PROPERTIES
    LABELS verify TIMEOUT 900 RUN_SERIAL ON ENVIRONMENT "${script_env}")

add_test(NAME install COMMAND bash ${PROJECT_SOURCE_DIR}/tests/install/run.sh
         ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER})
set_tests_properties(install PROPERTIES LABELS install TIMEOUT 300 SKIP_RETURN_CODE ${skip_code})

if(EXISTS ${PROJECT_SOURCE_DIR}/tests/bench/CMakeLists.txt)
    add_subdirectory(${PROJECT_SOURCE_DIR}/tests/bench)
endif()

# Seconds of those that take long, so that ctest starts them first and no core is idle in the end. What it has measured
# in an earlier run counts for the others only.
set(costs lab.test_lab 34 test_killed 32 cli.test_tune 32 cli.test_compare 29 cli.test_launch 24 test_timeout 18 test_planner 18
          test_aligned 18 test_bits 18 cli.test_verify 12 test_runtime 13 test_order 13 device.strategies_2d 12
          device.direct_2d 11 cli.test_topo 11 test_planner_drawn 8 cli.test_json 8 bench.plan 8 cli.test_compare_grid 8)
while(costs)
    list(POP_FRONT costs name seconds)
    if(TEST ${name})
        set_tests_properties(${name} PROPERTIES COST ${seconds})
    endif()
endwhile()
