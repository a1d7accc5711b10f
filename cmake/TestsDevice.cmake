# tests/device: the text of the device executor's kernels (src/gpu/kernel, src/gpu/program/piece.h), compiled for the
# host; ranks x blocks are threads. One program, a test per name, label "device" (and "unit", which the sanitizers
# run). Mutants: the same program with one place of that text changed; the named test must fail. The text itself has
# no switches for tests.

set(device_folder ${PROJECT_SOURCE_DIR}/tests/device)
set(device_texts kernel/block.h kernel/ll.h kernel/move.h kernel/wait.h program/piece.h)
list(TRANSFORM device_texts PREPEND ${PROJECT_SOURCE_DIR}/src/gpu/)
set(route_text ${PROJECT_SOURCE_DIR}/src/gpu/route/route.c)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${device_texts} ${route_text})

add_library(meshcoll_device_tests OBJECT ${device_folder}/bits.c ${device_folder}/box.c
            ${device_folder}/counts.c ${device_folder}/far.c ${device_folder}/test_walk.c)
meshcoll_compile_options(meshcoll_device_tests)
target_include_directories(meshcoll_device_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(meshcoll_device_tests PRIVATE meshcoll_test_support)
if(MESHCOLL_SANITIZE)
    target_compile_definitions(meshcoll_device_tests PRIVATE MOST_STRATEGIES=10)
endif()

# meshcoll_device_program(<target> [<folder of another text>])
function(meshcoll_device_program target)
    add_executable(${target} ${device_folder}/host_walk.c $<TARGET_OBJECTS:meshcoll_device_tests>)
    meshcoll_compile_options(${target})
    meshcoll_alike_options(${target})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
    target_include_directories(${target} BEFORE PRIVATE ${ARGN})
    target_link_libraries(${target} PRIVATE meshcoll_test_support)
endfunction()

function(meshcoll_device_test name labels)
    add_test(NAME device.${name} COMMAND ${ARGN})
    set_tests_properties(device.${name} PROPERTIES LABELS "${labels}" TIMEOUT 320
        ENVIRONMENT "${sanitizer_env}" ${sanitizer_fails})
endfunction()

meshcoll_device_program(device_walk)
set(walk_tests strategies_1d strategies_2d strategies_ragged counts_and_places long_vectors receiver_first
               sender_first relay_first joined tracks several_threads full_block direct_1d direct_2d direct_ragged
               direct_far direct_receiver_late direct_receiver_first direct_several_threads ll_receiver_first
               ll_sender_first ll_several_threads ll_wraps counts_wrap differs far_2d far_ragged far_3d
               far_receiver_first far_sender_first limit abort_word reductions alike)
foreach(name IN LISTS walk_tests)
    meshcoll_device_test(${name} "device;unit" device_walk ${name})
endforeach()

# Writes the text that has the place, of several, with what is there instead, to a folder of the mutant's:
# meshcoll_mutate(<name> <texts> <place> <what is there instead> <folder> <variable for the file's path>)
function(meshcoll_mutate name texts from to folder result)
    foreach(path IN LISTS texts)
        file(READ ${path} text)
        string(FIND "${text}" "${from}" at)
        if(NOT at EQUAL -1)
            string(REPLACE "${from}" "${to}" text "${text}")
            file(RELATIVE_PATH file ${PROJECT_SOURCE_DIR}/src ${path})
            get_filename_component(place ${folder}/${file} DIRECTORY)
            file(MAKE_DIRECTORY ${place})
            file(WRITE ${folder}/new "${text}")
            file(COPY_FILE ${folder}/new ${folder}/${file} ONLY_IF_DIFFERENT)
            set(${result} ${folder}/${file} PARENT_SCOPE)
            return()
        endif()
    endforeach()
    message(FATAL_ERROR "no \"${from}\" in ${texts}: the mutant ${name} must be told what to change")
endfunction()

# meshcoll_device_mutant(<name> <test that must fail> <place> <what is there instead>)
function(meshcoll_device_mutant name test from to)
    set(folder ${PROJECT_BINARY_DIR}/mutants/${name})
    meshcoll_mutate(${name} "${device_texts}" "${from}" "${to}" ${folder} mutated)
    meshcoll_device_program(device_mutant_${name} ${folder})
    meshcoll_device_test(mutant_${name} device device_mutant_${name} --fails ${test})
endfunction()

# The same of the proxy's text, in place of the library's.
function(meshcoll_proxy_mutant name test from to)
    meshcoll_mutate(${name} "${route_text}" "${from}" "${to}" ${PROJECT_BINARY_DIR}/mutants/${name} mutated)
    meshcoll_device_program(device_mutant_${name})
    target_sources(device_mutant_${name} PRIVATE ${mutated})
    meshcoll_device_test(mutant_${name} device device_mutant_${name} --fails ${test})
endfunction()

if(NOT MESHCOLL_SANITIZE)
    meshcoll_device_mutant(flag_before_data receiver_first
        "    for (uint32_t i = 0; i < cursor->runs && status == MC_DEVICE_DONE; i++)"
        "    for (uint32_t m = thread.index; m < cursor->messages; m += thread.count)
        if (m >= cursor->receives)
            mc_release(mc_device_lane(thread, call, cursor, m)->raised, table->number[m] + 1);
    for (uint32_t i = 0; i < cursor->runs && status == MC_DEVICE_DONE; i++)")
    meshcoll_device_mutant(credit_off_by_one sender_first
        "sends ? MC_DEVICE_SLOTS : 0" "sends ? MC_DEVICE_SLOTS + 1 : 0")
    meshcoll_device_mutant(wrong_slot sender_first
        "number % MC_DEVICE_SLOTS" "(sends ? number : number + 1) % MC_DEVICE_SLOTS")
    meshcoll_device_mutant(no_barrier_before_flag several_threads
        "    mc_barrier(thread);
    for (uint32_t m" "    for (uint32_t m")
    meshcoll_device_mutant(joined_not_kept joined
        "cursor->at + last * cursor->runs + i" "cursor->at + 0 * last * cursor->runs + i")
    meshcoll_device_mutant(joined_sent_once joined
        "for (uint32_t m = p->receives; m < p->messages; m++)"
        "for (uint32_t m = p->receives; m < p->messages && m <= p->receives; m++)")
    meshcoll_device_mutant(joined_credit_before_data relay_first
        "    for (uint32_t i = 0; i < cursor->runs && status == MC_DEVICE_DONE; i++)"
        "    for (uint32_t m = thread.index; m < cursor->receives && m + 1 < cursor->messages; m += thread.count)
        mc_release(mc_device_lane(thread, call, cursor, m)->raised, table->number[m] + 1);
    for (uint32_t i = 0; i < cursor->runs && status == MC_DEVICE_DONE; i++)")
    meshcoll_device_mutant(track_not_awaited tracks
        "mc_device_mark(thread, call, cursor, run->lane, run->n), 64" "0, 64")
    meshcoll_device_mutant(track_of_the_last_launch tracks
        "call->track[mc_table(thread)->block].launch << 32" "(uint64_t)(0 * thread.index)")
    meshcoll_device_mutant(track_marked_before_its_step tracks
        "    if (cursor->messages > 0 && mc_device_begin" "    if (call->tracks > 1 && thread.index == 0)
        mc_release(&call->track[table->block].done, UINT64_MAX >> 1);
    if (cursor->messages > 0 && mc_device_begin")
    meshcoll_device_mutant(ll_flag_of_the_last_round ll_receiver_first
        "if (!differs)" "if (!differs || differs == (flag ^ (flag - MC_DEVICE_SLOTS)))")
    meshcoll_device_mutant(ll_half_a_word ll_receiver_first
        "((uint32_t)(high.b >> 32) ^ flag)" "0")
    meshcoll_device_mutant(ll_no_barrier_before_credit ll_several_threads
        "    if (mc_barrier_any(thread, status != MC_DEVICE_DONE)) {
        mc_device_report_wait" "    if (0 && status != MC_DEVICE_DONE) {
        mc_device_report_wait")
    meshcoll_device_mutant(ll_never_cleaned ll_wraps
        "(MC_DEVICE_LL_COUNT_BITS - 1)) - 1)) < MC_DEVICE_SLOTS" "(MC_DEVICE_LL_COUNT_BITS - 1)) - 1)) > UINT32_MAX")
    meshcoll_device_mutant(direct_before_begin direct_receiver_late
        "status = mc_device_await(call, lane->begun," "status = 1 ? MC_DEVICE_DONE : mc_device_await(call, lane->begun,")
    meshcoll_device_mutant(direct_flag_before_data direct_receiver_first
        "    for (uint32_t i = 0; i < cursor->runs && status == MC_DEVICE_DONE; i++)"
        "    for (uint32_t m = thread.index; m < cursor->messages; m += thread.count)
        if (cursor->direct >> m & 1)
            mc_release(mc_device_lane(thread, call, cursor, m)->raised, table->number[m] + 1);
    for (uint32_t i = 0; i < cursor->runs && status == MC_DEVICE_DONE; i++)")
    meshcoll_device_mutant(direct_whole_words direct_1d
        "mc_device_store_part(mc_device_message(p, m, at), x, left)" "mc_store_word(mc_device_message(p, m, at), x)")
    meshcoll_device_mutant(direct_not_passed_on joined
        "p.begin = (uint32_t)lies;" "p.begin = 0;")
    meshcoll_device_mutant(same_piece_each_pass long_vectors
        "(uint64_t)pass * most" "0 * (uint64_t)pass")
    meshcoll_device_mutant(slice_short_of_a_word strategies_1d
        "run->slice * (slice + 1)" "(run->slice * (slice + 1) - (slice == 1) * MC_DEVICE_WORD)")
    meshcoll_device_mutant(takes_other_calls differs
        "return table->digest[m] == call->digest ?" "return 1 ?")
    meshcoll_device_mutant(ll_takes_other_calls differs
        "uint32_t digest)
{
    return (uint32_t)(number + 1)" "uint32_t digest)
{
    digest = 0;
    return (uint32_t)(number + 1)")
    meshcoll_device_mutant(no_limit limit
        "now - *begun > call->limit" "0 * (now - *begun) > call->limit")
    meshcoll_device_mutant(no_abort abort_word
        "if (mc_poll(call->abort_word))" "if (0)")
    meshcoll_proxy_mutant(proxy_flag_before_data far_receiver_first
        "io->complete = status == MESHCOLL_OK;
    }" "io->complete = r->params.receives || status == MESHCOLL_OK;
    }")
    meshcoll_proxy_mutant(proxy_credit_before_sent far_sender_first
        "io->complete = status == MESHCOLL_OK;
    }" "io->complete = !r->params.receives || status == MESHCOLL_OK;
    }")
    meshcoll_proxy_mutant(proxy_credit_off_by_one far_sender_first
        "mc_device_count(f->number[i], f->digest)," "mc_device_count(f->number[i], f->digest) + !r->params.receives,")
    meshcoll_proxy_mutant(proxy_takes_before_all_blocks far_2d
        "f->number[i]) <= 0)
            return false;" "f->number[i]) <= 0 && i == 0)
            return false;")
endif()

# The fake of libcuda, which is opened in its place; and what is tested with it.
set(fake_folder ${device_folder}/cuda)
add_library(fakecuda SHARED ${fake_folder}/fake_device.c ${fake_folder}/fake_memory.c ${fake_folder}/fake_stream.c
            ${device_folder}/host_walk.c ${PROJECT_SOURCE_DIR}/src/gpu/program/find_body.c)
meshcoll_compile_options(fakecuda)
meshcoll_alike_options(fakecuda)
set_target_properties(fakecuda PROPERTIES C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_include_directories(fakecuda PRIVATE ${device_folder} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(fakecuda PRIVATE Threads::Threads)

# libmeshcoll for programs on the fake that are not built here (python/tests); needs no nvcc.
add_library(on_double SHARED ${fake_folder}/any_image.c
            $<FILTER:$<TARGET_OBJECTS:meshcoll_objects>,EXCLUDE,gpu/cuda/image|handle/no_gpu>)
if(TARGET meshcoll_gpu_objects)
    target_sources(on_double PRIVATE $<FILTER:$<TARGET_OBJECTS:meshcoll_gpu_objects>,EXCLUDE,gpu/cuda/image>)
    set(gpu_ops $<FILTER:$<TARGET_OBJECTS:meshcoll_gpu_objects>,INCLUDE,gpu/call/ops>) # in place of the library's
endif()
meshcoll_compile_options(on_double)
set_target_properties(on_double PROPERTIES OUTPUT_NAME meshcoll VERSION ${PROJECT_VERSION} SOVERSION 0
    C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device/on_double)
target_include_directories(on_double PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(on_double PRIVATE meshcoll_dependencies)

# A fake of NVML, which `meshcoll topo` opens in its place.
add_library(fakenvml SHARED ${fake_folder}/fake_nvml.c)
meshcoll_compile_options(fakenvml)
set_target_properties(fakenvml PROPERTIES C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_include_directories(fakenvml PRIVATE ${device_folder} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)

# The prototypes of libcuda's functions beside cuda.h, where nvcc brings one.
add_executable(device_prototypes ${fake_folder}/prototypes.c)
meshcoll_compile_options(device_prototypes)
set_target_properties(device_prototypes PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_include_directories(device_prototypes PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/bench)
find_path(MESHCOLL_CUDA_INCLUDE cuda.h HINTS /usr/local/cuda/include)
if(MESHCOLL_CUDA_INCLUDE)
    target_include_directories(device_prototypes SYSTEM PRIVATE ${MESHCOLL_CUDA_INCLUDE})
endif()
meshcoll_device_test(prototypes device device_prototypes)
set_tests_properties(device.prototypes PROPERTIES SKIP_RETURN_CODE ${skip_code})

# A fake of what UCX with CUDA does, in front of the UCX that there is.
add_library(fakeucx SHARED ${fake_folder}/fake_ucx.c)
meshcoll_compile_options(fakeucx)
set_target_properties(fakeucx PROPERTIES C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_include_directories(fakeucx PRIVATE ${device_folder} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                                           $<TARGET_PROPERTY:PkgConfig::UCX,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(fakeucx PRIVATE fakecuda ${CMAKE_DL_LIBS})

add_library(oldcuda SHARED ${fake_folder}/old.c)
meshcoll_compile_options(oldcuda)
set_target_properties(oldcuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_include_directories(oldcuda PRIVATE ${PROJECT_SOURCE_DIR}/src)

# Calls on device memory, by processes on the fake.
add_library(meshcoll_gpu_tests OBJECT ${fake_folder}/rig.c ${fake_folder}/test_calls.c ${fake_folder}/test_explain.c
            ${fake_folder}/test_learned.c ${fake_folder}/test_direct.c ${fake_folder}/test_far.c ${fake_folder}/test_faults.c
            ${fake_folder}/test_register.c ${fake_folder}/test_special.c ${fake_folder}/test_staged.c ${fake_folder}/test_stale.c
            ${fake_folder}/test_streams.c ${fake_folder}/test_tracks.c)
meshcoll_compile_options(meshcoll_gpu_tests)
target_compile_definitions(meshcoll_gpu_tests PRIVATE MC_FAKE_CUDA="$<TARGET_FILE:fakecuda>"
                                                      MC_OLD_CUDA="$<TARGET_FILE:oldcuda>")
target_include_directories(meshcoll_gpu_tests PRIVATE ${fake_folder} ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(meshcoll_gpu_tests PRIVATE meshcoll_test_support fakecuda)

# meshcoll_gpu_program(<target> [<source in place of the library's>])
function(meshcoll_gpu_program target)
    add_executable(${target} $<TARGET_OBJECTS:meshcoll_gpu_tests> ${gpu_ops} ${ARGN})
    meshcoll_compile_options(${target})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
    target_link_libraries(${target} PRIVATE fakeucx meshcoll_test_support fakecuda) # fakeucx before UCX
    add_dependencies(${target} oldcuda)
endfunction()

meshcoll_gpu_program(device_gpu)
foreach(name IN ITEMS collectives strategies host_memory types in_flight ordered persistent blocking kinds
                      unequal_blocks captured capture_mode no_context many_programs parts known_calls guards late aborted cannot_open cannot_share cannot_launch one_gpu
                      no_libcuda old_libcuda no_kernels disagree refused stale stale_start stale_captured differ nothing_left any_order
                      registered registered_late registered_captured cannot_register tracks
                      progress_thread streams slow queue_full gave_up killed executor learned late_times learned_captured learned_bits explained counted staged staged_ends
                      staged_fails scaled passing
                      far_collectives far_ragged far_3d far_types far_strategies far_unequal far_long far_in_flight
                      far_mixed far_parts far_blocking far_persistent far_threads far_launch_blocking far_idle far_captured far_late
                      far_aborted far_killed far_refused far_cannot_open far_cannot_launch far_left
                      far_mismatch far_differ far_streams far_explained far_registered far_tracks
                      far_direct far_direct_ordered far_direct_one_end far_direct_cannot far_direct_full
                      far_direct_fails far_direct_setting)
    meshcoll_device_test(gpu_${name} device device_gpu ${name})
    set_tests_properties(device.gpu_${name} PROPERTIES SKIP_RETURN_CODE ${skip_code})
endforeach()

# The same with messages between machines in memory of GPUs.
foreach(name IN ITEMS far_ragged far_unequal far_long far_in_flight far_mixed far_parts far_persistent far_idle far_late
                      far_aborted far_killed far_cannot_launch far_left far_mismatch far_differ)
    meshcoll_device_test(gpu_${name}_direct device device_gpu ${name})
    set_tests_properties(device.gpu_${name}_direct PROPERTIES SKIP_RETURN_CODE ${skip_code}
        ENVIRONMENT "${sanitizer_env};MESHCOLL_GPU_DIRECT=on;FAKE_UCX_CUDA=1;FAKE_DIRECT=flush")
endforeach()

# The same by the stream executor, on so many GPUs.
foreach(name IN ITEMS types in_flight ordered persistent blocking kinds unequal_blocks captured parts late
                      aborted cannot_open cannot_share cannot_launch disagree refused stale stale_start stale_captured differ any_order progress_thread registered
                      registered_late
                      registered_captured cannot_register)
    meshcoll_device_test(gpu_${name}_in_streams device device_gpu ${name} 1)
endforeach()
meshcoll_device_test(gpu_strategies_on_two device device_gpu strategies 2)
meshcoll_device_test(gpu_host_memory_in_streams device device_gpu host_memory 4)
meshcoll_device_test(gpu_registered_on_four device device_gpu registered 4)

# meshcoll_gpu_mutant(<name> <source> <test that must fail> <GPUs of the stream executor, or ""> <place>
# <what is there instead>)
function(meshcoll_gpu_mutant name path test gpus from to)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path})
    file(READ ${PROJECT_SOURCE_DIR}/src/${path} text)
    get_filename_component(source ${path} NAME)
    string(FIND "${text}" "${from}" at)
    if(at EQUAL -1)
        message(FATAL_ERROR "${source} has no \"${from}\": the mutant ${name} must be told what to change")
    endif()
    string(REPLACE "${from}" "${to}" text "${text}")
    set(folder ${PROJECT_BINARY_DIR}/mutants/${name})
    file(MAKE_DIRECTORY ${folder})
    file(WRITE ${folder}/new.c "${text}")
    file(COPY_FILE ${folder}/new.c ${folder}/${source} ONLY_IF_DIFFERENT)
    meshcoll_gpu_program(device_mutant_${name} ${folder}/${source})
    meshcoll_device_test(mutant_${name} device device_mutant_${name} --fails ${test} ${gpus})
    set_tests_properties(device.mutant_${name} PROPERTIES SKIP_RETURN_CODE ${skip_code})
endfunction()

if(NOT MESHCOLL_SANITIZE)
    meshcoll_gpu_mutant(full_before_copy gpu/stream/stream.c slow 1
        "    flush(q);
    for (uint32_t i = cursor->at"
        "    if (sends)
        write_word(q, state, mc_stream_full(call->digest));
    flush(q);
    for (uint32_t i = cursor->at")
    meshcoll_gpu_mutant(full_is_empty gpu/stream/stream.c slow 1
        "sends ? MC_STREAM_EMPTY : MC_STREAM_FULL);
    }" "sends ? MC_STREAM_OPEN : MC_STREAM_FULL);
    }")
    meshcoll_gpu_mutant(direct_before_begun gpu/stream/stream.c registered_late 1
        "    await_call(q, lane->begun, lane->word + MC_DEVICE_SLOTS);" "")
    meshcoll_gpu_mutant(one_slot gpu/stream/stream.c slow 1 "(uint64_t)slot *" "0 * (uint64_t)slot *")
    meshcoll_gpu_mutant(same_piece gpu/stream/stream.c slow 1 "q->call->piece, 0, pass," "q->call->piece, 0, 0 * pass,")
    meshcoll_gpu_mutant(nobody_told gpu/stream/signals.c gave_up 1
        "word_at(s, r, NOTICE), &none" "word_at(s, s->rank, NOTICE), &none")
    meshcoll_gpu_mutant(opened_once gpu/stream/signals.c gave_up 1
        "    for (long us = OPEN_US; !rest(s, us);) {
        open_all(s);"
        "    open_all(s);
    for (long us = OPEN_US; !rest(s, us);) {")
    meshcoll_gpu_mutant(direct_never_flushed gpu/route/route.c far_direct ""
        "done > r->n_done && r->params.flush" "0 && r->params.flush")
    meshcoll_gpu_mutant(direct_told_before_flushed gpu/route/route.c far_direct ""
        "    const int status = done > r->n_done && r->params.flush ? r->params.flush() : MESHCOLL_OK;
    if (status)
        return status;
    for (; r->n_done < done; r->n_done++, ++*moved)
        raise_blocks(r, flight_of(r, r->n_done));"
        "    const bool any = done > r->n_done;
    for (; r->n_done < done; r->n_done++, ++*moved)
        raise_blocks(r, flight_of(r, r->n_done));
    if (any && r->params.flush)
        r->params.flush();")
    meshcoll_gpu_mutant(direct_as_host gpu/route/route.c far_direct ""
        ".on_device = r->params.slots != 0" ".on_device = false")
    meshcoll_gpu_mutant(direct_without_context gpu/proxy/thread.c far_direct ""
        "mc_cuda()->context_push(context)" "context == 0")
    meshcoll_gpu_mutant(direct_within_captures gpu/proxy/thread.c far_direct ""
        "mc_cuda()->capture_mode(&mode)" "mode == 0")
    meshcoll_gpu_mutant(direct_as_own_end_is gpu/proxy/proxy.c far_direct_one_end ""
        "end->direct || end->is_direct[rank]" "end->direct")
    meshcoll_gpu_mutant(direct_unordered gpu/proxy/gpudirect.c far_direct_cannot ""
        "d->why_not = \"nothing tells" "(void)\"nothing tells")
endif()

# The library's other half of src/gpu, where it is built without: here whatever this one is.
add_executable(device_no_gpu ${fake_folder}/no_gpu.c ${PROJECT_SOURCE_DIR}/src/runtime/handle/no_gpu.c
               ${PROJECT_SOURCE_DIR}/tests/support/inproc.c)
meshcoll_compile_options(device_no_gpu)
set_target_properties(device_no_gpu PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_include_directories(device_no_gpu PRIVATE ${device_folder} ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(device_no_gpu PRIVATE meshcoll_internal fakecuda)
meshcoll_device_test(no_gpu device device_no_gpu)
set_tests_properties(device.no_gpu PROPERTIES SKIP_RETURN_CODE ${skip_code}
    ENVIRONMENT "${sanitizer_env};MESHCOLL_LIBCUDA=$<TARGET_FILE:fakecuda>")

add_executable(device_image ${fake_folder}/image.c)
meshcoll_compile_options(device_image)
set_target_properties(device_image PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_link_libraries(device_image PRIVATE meshcoll_gpu)
meshcoll_device_test(image device device_image)
set_tests_properties(device.image PROPERTIES SKIP_RETURN_CODE ${skip_code})

# The fake of libnccl, for meshcoll-bench --flat nccl (tests/bench).
add_library(fakenccl SHARED ${fake_folder}/fake_nccl.c)
meshcoll_compile_options(fakenccl)
set_target_properties(fakenccl PROPERTIES C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_include_directories(fakenccl PRIVATE ${device_folder} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(fakenccl PRIVATE fakecuda Threads::Threads)

# Figures of one card, beside what is asked of them: here only that the program runs, on the fake.
add_executable(device_figures ${fake_folder}/figures.c ${PROJECT_SOURCE_DIR}/bench/common/gpu.c)
meshcoll_compile_options(device_figures)
set_target_properties(device_figures PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_include_directories(device_figures PRIVATE ${PROJECT_SOURCE_DIR}/bench)
target_link_libraries(device_figures PRIVATE meshcoll_gpu ${CMAKE_DL_LIBS})
add_dependencies(device_figures fakecuda)
meshcoll_device_test(figures device device_figures 4096)
set_tests_properties(device.figures PROPERTIES SKIP_RETURN_CODE ${skip_code}
    ENVIRONMENT "${sanitizer_env};MESHCOLL_LIBCUDA=$<TARGET_FILE:fakecuda>")

# Processes that share GPUs: here on the fake, by hand on a card.
add_executable(device_processes ${fake_folder}/processes.c)
meshcoll_compile_options(device_processes)
set_target_properties(device_processes PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_include_directories(device_processes PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(device_processes PRIVATE meshcoll_test_support ${CMAKE_DL_LIBS})
add_dependencies(device_processes fakecuda)
meshcoll_device_test(processes device device_processes 3 2 2)
set_tests_properties(device.processes PROPERTIES SKIP_RETURN_CODE ${skip_code}
    ENVIRONMENT "${sanitizer_env};MESHCOLL_LIBCUDA=$<TARGET_FILE:fakecuda>")

# All ranks in one grid of one GPU: here on the fake, by hand on a card.
add_executable(device_one_grid ${fake_folder}/one_grid.c ${device_folder}/box.c ${device_folder}/far.c
               ${device_folder}/host_walk.c)
meshcoll_compile_options(device_one_grid)
meshcoll_alike_options(device_one_grid)
set_target_properties(device_one_grid PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
target_include_directories(device_one_grid PRIVATE ${device_folder} ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(device_one_grid PRIVATE meshcoll_test_support ${CMAKE_DL_LIBS})
add_dependencies(device_one_grid fakecuda)
meshcoll_device_test(one_grid device device_one_grid 2 1)
set_tests_properties(device.one_grid PROPERTIES SKIP_RETURN_CODE ${skip_code}
    ENVIRONMENT "${sanitizer_env};MESHCOLL_LIBCUDA=$<TARGET_FILE:fakecuda>")
