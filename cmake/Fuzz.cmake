# Fuzz targets, found by folder: tests/fuzz/fuzz_NAME.c is the program fuzz_NAME and the test fuzz.NAME, label "fuzz".
# Its kept corpus is tests/fuzz/corpus/NAME, its dictionary, if there is one, tests/fuzz/NAME.dict. The target "fuzz"
# builds all of them.

# ctest's own limit. FUZZ_SECONDS limits a run (tests/fuzz/run.sh), and may be an hour.
set(fuzz_timeout 4000)

add_custom_target(fuzz)
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source IN LISTS fuzz_sources)
    get_filename_component(target ${source} NAME_WE)
    string(REPLACE "fuzz_" "" name ${target})
    add_executable(${target} EXCLUDE_FROM_ALL ${source})
    meshcoll_compile_options(${target})
    set_target_properties(${target} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/fuzz)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${target} PRIVATE meshcoll_simulate)
    add_dependencies(fuzz ${target})
    add_test(NAME fuzz.${name} COMMAND bash ${PROJECT_SOURCE_DIR}/tests/fuzz/run.sh ${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${fuzz_timeout}
        ENVIRONMENT "MESHCOLL_BUILD_DIR=${PROJECT_BINARY_DIR}")
endforeach()
target_sources(fuzz_tagged PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/inproc.c)
