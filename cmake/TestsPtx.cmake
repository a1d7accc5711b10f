# tests/device/ptx: the kernels as nvcc compiled them for sm_90, their PTX translated to C, under the tests of
# TestsDevice.cmake. A mutant is one kernel or two with one place of the PTX changed; the named test must fail.

set(ptx_folder ${device_folder}/ptx)
if(NOT MESHCOLL_HAVE_CUDA OR NOT 90 IN_LIST cuda_archs OR NOT Python3_FOUND OR MESHCOLL_SANITIZE)
    add_test(NAME device.ptx COMMAND sh -c
             "echo 'skipped: the kernels are not compiled for sm_90 here: that takes nvcc, Python and -DMESHCOLL_CUDA=ON'; exit 77")
    set_tests_properties(device.ptx PROPERTIES LABELS device SKIP_RETURN_CODE ${skip_code})
    return()
endif()

# meshcoll_ptx_program(<target> <parts> [<options of translate.py>])
function(meshcoll_ptx_program target parts)
    set(out ${PROJECT_BINARY_DIR}/ptx/${target})
    set(sources)
    math(EXPR last "${parts} - 1")
    foreach(part RANGE ${last})
        list(APPEND sources ${out}/part_${part}.c)
    endforeach()
    add_custom_command(
        OUTPUT ${sources} ${out}/kernels.h
        COMMAND ${Python3_EXECUTABLE} ${ptx_folder}/translate.py ${cuda_folder}/sm_90.ptx ${out} --parts ${parts} ${ARGN}
        DEPENDS ${ptx_folder}/translate.py ${cuda_folder}/sm_90.cubin
        COMMENT "PTX as C for ${target}" VERBATIM)
    add_executable(${target} ${ptx_folder}/ptx.c ${ptx_folder}/ptx_walk.c ${sources} ${out}/kernels.h
                   $<TARGET_OBJECTS:meshcoll_device_tests>)
    meshcoll_compile_options(${target})
    meshcoll_alike_options(${target})
    set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "-O1;-w")
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
    target_include_directories(${target} PRIVATE ${ptx_folder} ${out} ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${target} PRIVATE meshcoll_test_support)
endfunction()

# The longest sweeps are left out: they add plans, not instructions.
meshcoll_ptx_program(device_ptx 8)
set(ptx_tests ${walk_tests})
list(REMOVE_ITEM ptx_tests strategies_2d direct_2d far_3d)
foreach(name IN LISTS ptx_tests)
    meshcoll_device_test(ptx_${name} device device_ptx ${name})
endforeach()

# meshcoll_ptx_mutant(<name> <test that must fail> <kernel> <place> <what is there instead>)
function(meshcoll_ptx_mutant name test kernel from to)
    meshcoll_ptx_program(device_ptx_${name} 1 --only ${kernel} --replace "${from}" "${to}")
    meshcoll_device_test(ptx_mutant_${name} device device_ptx_${name} --fails ${test})
endfunction()

meshcoll_ptx_mutant(no_barrier several_threads mc_walk_uint32_sum "bar.sync" "// bar.sync")
meshcoll_ptx_mutant(relaxed_release receiver_first mc_walk_move
                    "st.release.sys.global.u64" "st.relaxed.sys.global.u64")
meshcoll_ptx_mutant(relaxed_acquire receiver_first mc_walk_move
                    "ld.acquire.sys.global.u64" "ld.relaxed.sys.global.u64")
meshcoll_ptx_mutant(offset receiver_first mc_walk_move "+96" "+104")
