/* Calls on device memory, by processes on the fake of libcuda: results, order, kinds of memory. */
#include "ranks.h"
#include "rig.h"

#include "gpu/mesh/gpu.h"
#include "support/strategies.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of all collectives, in place and not, one after the other and in all types that turn up. */
static mc_case_t turn_case(int size, unsigned turn)
{
    static const size_t counts[] = {7, 1, 1000, 5003, 33, 30000};
    const meshcoll_collective_t collective = (meshcoll_collective_t)(turn % MESHCOLL_COLLECTIVES);
    const unsigned round = turn / MESHCOLL_COLLECTIVES;
    const meshcoll_datatype_t type = (meshcoll_datatype_t)(turn % MESHCOLL_DATATYPES);
    return (mc_case_t){.collective = collective,
                       .count = counts[round % (sizeof counts / sizeof counts[0])],
                       .datatype = type,
                       .op = mc_case_reduces(collective) ? mc_element_op(type, (int)round)
                                                         : MESHCOLL_SUM,
                       .root = mc_case_is_rooted(collective) ? (int)(turn % (unsigned)size) : 0,
                       .in_place = round % 2,
                       .bare = turn % 3 == 0};
}

void rig_turns(meshcoll_t *mesh, unsigned first, unsigned n)
{
    const mc_cu_stream_t stream = rig_new_stream();
    for (unsigned turn = first; turn < first + n; turn++) {
        const mc_case_t c = turn_case(meshcoll_size(mesh), turn);
        NEED(rig_enqueue(mesh, &c, NULL, turn % 2 ? stream : NULL));
    }
    NEED(cuStreamDestroy_v2(stream) == 0);
}

static void rank_collectives(meshcoll_t *mesh)
{
    rig_turns(mesh, 0, 2 * 6 * MESHCOLL_COLLECTIVES);
}

/* On a line, in two dimensions and on two ranks; several blocks, slots that take many passes, with messages
 * that have flags in their data and without. */
bool test_collectives(void)
{
    const rig_t rigs[] = {{.mesh = "gpu=4", .blocks = "3", .slot = "4096", .tidy = true},
                          {.mesh = "box=2,gpu=2", .blocks = "2", .slot = "512", .ll_slot = "0"},
                          {.mesh = "gpu=2", .slot = "65536"},
                          {.mesh = "gpu=1"}};
    bool good = true;
    for (size_t i = 0; i < sizeof rigs / sizeof rigs[0]; i++)
        good = rig_run(&rigs[i], rank_collectives) && good;
    return good;
}

void rank_strategies(meshcoll_t *mesh)
{
    mc_mesh_t shape;
    unsigned n = 0;
    NEED(mc_mesh_parse(meshcoll_mesh_text(mesh), &shape) == MESHCOLL_OK);
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
        mc_sample_t sample;
        NEED(mc_sample_open((meshcoll_collective_t)k, &shape, 12, &sample) == 0);
        for (int i = 0; i < sample.n; i++, n++) {
            mc_case_t c = turn_case(shape.size, n);
            c.collective = (meshcoll_collective_t)k;
            c.datatype = MESHCOLL_INT32;
            c.op = MESHCOLL_SUM;
            c.root = mc_case_is_rooted(c.collective) ? c.root : 0;
            NEED(rig_enqueue(mesh, &c, sample.text[i], NULL));
        }
        mc_sample_close(&sample);
    }
    NEED(n > 30);
}

bool test_strategies(void)
{
    const rig_t rig = {.mesh = "box=2,gpu=3", .blocks = "2", .slot = "2048", .tidy = true};
    return rig_run(&rig, rank_strategies);
}

/* GPUs 0 and 1 do not reach 2 and 3: their messages lie in memory of the host. */
static void rank_host_memory(meshcoll_t *mesh)
{
    fake_islands(2);
    rig_turns(mesh, 0, 2 * MESHCOLL_COLLECTIVES);
    /* of the stream executor also the signals of all four ranks */
    NEED(fake_calls("cuMemHostRegister_v2") == (rig_streams ? 7 : 3));
    NEED(fake_calls("cuIpcOpenMemHandle_v2") == 1);
}

bool test_host_memory(void)
{
    const rig_t rig = {.mesh = "gpu=4", .blocks = "2", .slot = "1024", .tidy = true};
    return rig_run(&rig, rank_host_memory);
}

/* Every datatype with every operation that it has; blocks of two threads. */
void rank_types(meshcoll_t *mesh)
{
    fake_kernels(0, 2);
    for (int t = 0; t < MESHCOLL_DATATYPES; t++)
        for (int o = 0; o < MESHCOLL_OPS; o++) {
            const mc_case_t c = {.collective = o % 2 ? MESHCOLL_ALLREDUCE : MESHCOLL_REDUCE_SCATTER,
                                 .count = 37,
                                 .datatype = (meshcoll_datatype_t)t,
                                 .op = mc_element_op((meshcoll_datatype_t)t, o)};
            NEED(rig_enqueue(mesh, &c, NULL, NULL));
        }
}

bool test_types(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2"};
    return rig_run(&rig, rank_types);
}

/* Many calls in two streams before any is waited for. The mesh keeps their order: each second call sums up
 * what the one before it, in the other stream, gave. */
enum { CALLS = 12, ELEMENTS = 3000 };

void rank_in_flight(meshcoll_t *mesh)
{
    const int size = meshcoll_size(mesh);
    const mc_cu_stream_t stream[2] = {rig_new_stream(), rig_new_stream()};
    int32_t *const host = calloc(ELEMENTS, sizeof *host);
    mc_cu_address_t at;
    int32_t wanted = 1;
    fake_kernels(2000 * (unsigned)rig_rank, 1);
    for (int i = 0; i < ELEMENTS; i++)
        host[i] = 1;
    NEED(cuMemAlloc_v2(&at, ELEMENTS * sizeof *host) == 0);
    NEED(cuMemcpyHtoDAsync_v2(at, host, ELEMENTS * sizeof *host, stream[0]) == 0);
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = (void *)(uintptr_t)at,
                                  .out = (void *)(uintptr_t)at,
                                  .count = ELEMENTS,
                                  .datatype = MESHCOLL_INT32};
    for (int i = 0; i < CALLS; i++, wanted *= size)
        NEED(meshcoll_enqueue(mesh, &args, stream[i % 2]) == MESHCOLL_OK);
    NEED(cuMemcpyDtoHAsync_v2(host, at, ELEMENTS * sizeof *host, stream[(CALLS - 1) % 2]) == 0);
    NEED(cuStreamSynchronize(stream[(CALLS - 1) % 2]) == 0);
    for (int i = 0; i < ELEMENTS; i++)
        NEED(host[i] == wanted);
    NEED(meshcoll_async_error(mesh) == MESHCOLL_OK);
    NEED(cuMemFree_v2(at) == 0);
    free(host);
}

bool test_in_flight(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2", .slot = "1024"};
    return rig_run(&rig, rank_in_flight);
}

static void await_word(void *word)
{
    while (!atomic_load((atomic_bool *)word))
        usleep(1000);
}

/* A call does not wait for its kernel, which stands in its stream behind what ends only after the call. */
static void rank_ordered(meshcoll_t *mesh)
{
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .count = 100, .datatype = MESHCOLL_FLOAT32};
    const mc_cu_stream_t stream = rig_new_stream();
    atomic_bool called = false;
    rig_case_t r;
    NEED(rig_enqueue(mesh, &c, NULL, stream)); /* the first call meets the other ranks */
    rig_open(mesh, &c, NULL, &r);
    rig_fill(&r, stream);
    NEED(cuLaunchHostFunc(stream, await_word, &called) == 0);
    const double begun = mc_now();
    fake_kernels(300 * 1000, 1);
    NEED(meshcoll_enqueue(mesh, &r.args, stream) == MESHCOLL_OK);
    NEED(cuStreamQuery(stream) == MC_CU_ERROR_NOT_READY);
    NEED(meshcoll_async_error(mesh) == MESHCOLL_OK);
    atomic_store(&called, true);
    NEED(rig_check(&r, stream));
    NEED(mc_now() - begun >= 0.3);
    rig_close(&r);
}

bool test_ordered(void)
{
    const rig_t rig = {.mesh = "gpu=2"};
    return rig_run(&rig, rank_ordered);
}

void rank_persistent(meshcoll_t *mesh)
{
    const mc_cu_stream_t stream = rig_new_stream();
    for (unsigned turn = 0; turn < MESHCOLL_COLLECTIVES; turn++) {
        const mc_case_t c = turn_case(meshcoll_size(mesh), turn);
        meshcoll_request_t *request;
        rig_case_t r;
        rig_open(mesh, &c, NULL, &r);
        NEED(meshcoll_init(mesh, &r.args, &request) == MESHCOLL_OK);
        NEED(meshcoll_request_strategy(request)[0]);
        NEED(meshcoll_start(request) == MESHCOLL_ERR_INVALID_ARG);
        for (int again = 0; again < 3; again++) {
            rig_fill(&r, stream);
            NEED(meshcoll_enqueue_request(request, stream) == MESHCOLL_OK);
            NEED(rig_check(&r, stream));
        }
        meshcoll_free(request);
        rig_close(&r);
    }
    int32_t x = 1;
    meshcoll_request_t *on_host;
    NEED(meshcoll_allreduce_init(mesh, &x, &x, 1, MESHCOLL_INT32, MESHCOLL_SUM, &on_host) ==
         MESHCOLL_OK);
    NEED(meshcoll_enqueue_request(on_host, stream) == MESHCOLL_ERR_INVALID_ARG);
    meshcoll_free(on_host);
}

bool test_persistent(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2", .slot = "4096"};
    return rig_run(&rig, rank_persistent);
}

/* Blocking calls, on both kinds of memory in turn, also where they differ in nothing else. */
static int run_blocking(meshcoll_t *mesh, const meshcoll_args_t *a)
{
    return meshcoll_allreduce(mesh, a->in, a->out, a->count, a->datatype, a->op);
}

void rank_blocking(meshcoll_t *mesh)
{
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .count = 5000, .datatype = MESHCOLL_INT32};
    for (int again = 0; again < 4; again++) {
        char why[256];
        rig_case_t r;
        NEED(mc_case_run(mesh, &c, false, why, sizeof why) == 0);
        rig_open(mesh, &c, NULL, &r);
        rig_fill(&r, NULL);
        NEED(cuStreamSynchronize(NULL) == 0);
        NEED(run_blocking(mesh, &r.args) == MESHCOLL_OK);
        NEED(rig_check(&r, NULL));
        rig_close(&r);
    }
}

bool test_blocking(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2", .slot = "4096"};
    return rig_run(&rig, rank_blocking);
}

/* The same where a thread of the mesh progresses it, and calls take its lock. */
void rank_progress_thread(meshcoll_t *mesh)
{
    rank_blocking(mesh);
    rig_turns(mesh, 0, MESHCOLL_COLLECTIVES);
}

bool test_progress_thread(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2", .slot = "4096", .progress = "thread"};
    return rig_run(&rig, rank_progress_thread);
}

/* Kinds of memory --------------------------------------------------------------------------------- */

static void rank_kinds(meshcoll_t *mesh)
{
    enum { N = 64 };
    int32_t host[N] = {0}, *pinned;
    mc_cu_address_t device, managed;
    meshcoll_request_t *request;
    NEED(cuMemAlloc_v2(&device, sizeof host) == 0);
    NEED(cuMemAllocManaged(&managed, sizeof host, 1) == 0);
    NEED(cuMemHostAlloc((void **)&pinned, sizeof host, MC_CU_HOST_MAPPED) == 0);
    NEED(mc_pointer(host).kind == MC_MEMORY_HOST && mc_pointer(NULL).kind == MC_MEMORY_HOST);
    NEED(mc_pointer(pinned).kind == MC_MEMORY_REGISTERED);
    NEED(mc_pointer((void *)(uintptr_t)(device + 8)).kind == MC_MEMORY_DEVICE);
    NEED(mc_pointer((void *)(uintptr_t)managed).kind == MC_MEMORY_MANAGED);
    meshcoll_args_t a = {.size = sizeof a,
                         .collective = MESHCOLL_ALLREDUCE,
                         .in = (void *)(uintptr_t)device,
                         .out = host,
                         .count = N,
                         .datatype = MESHCOLL_INT32};
    NEED(run_blocking(mesh, &a) == MESHCOLL_ERR_INVALID_ARG);
    NEED(rig_says("in is device memory, out is host memory"));
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_INVALID_ARG &&
         rig_says("out is host memory"));
    a.out = pinned;
    NEED(run_blocking(mesh, &a) == MESHCOLL_ERR_INVALID_ARG && rig_says("pinned host memory"));
    a.out = (void *)(uintptr_t)device;
    NEED(meshcoll_begin(mesh, &a, &request) == MESHCOLL_ERR_INVALID_ARG && rig_says("nonblocking"));
    NEED(meshcoll_group_begin(mesh) == MESHCOLL_OK);
    NEED(run_blocking(mesh, &a) == MESHCOLL_ERR_INVALID_ARG && rig_says("a group"));
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_INVALID_ARG &&
         rig_says("a group is open"));
    NEED(meshcoll_group_end(mesh) == MESHCOLL_ERR_INVALID_ARG);
    /* the mesh works on, and managed memory goes with either */
    a.in = a.out = (void *)(uintptr_t)managed;
    int32_t *const on_host = a.out;
    on_host[N - 1] = 1;
    NEED(run_blocking(mesh, &a) == MESHCOLL_OK && on_host[N - 1] == meshcoll_size(mesh));
    NEED(fake_calls("cuLaunchKernel") == 0);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK && cuStreamSynchronize(NULL) == 0);
    NEED(on_host[N - 1] == meshcoll_size(mesh) * meshcoll_size(mesh));
    a.in = a.out = (void *)(uintptr_t)device;
    NEED(run_blocking(mesh, &a) == MESHCOLL_OK);
}

bool test_kinds(void)
{
    const rig_t rig = {.mesh = "gpu=2"};
    return rig_run(&rig, rank_kinds);
}

/* A call that repeats the last one on host memory asks the driver nothing. */
static void rank_known_calls(meshcoll_t *mesh)
{
    int32_t x[16] = {0}, y[16];
    for (int i = 0; i < 3; i++)
        NEED(meshcoll_allreduce(mesh, x, y, 16, MESHCOLL_INT32, MESHCOLL_SUM) == MESHCOLL_OK);
    const unsigned asked = fake_calls("cuPointerGetAttributes");
    NEED(asked >= 1);
    for (int i = 0; i < 100; i++)
        NEED(meshcoll_allreduce(mesh, x, y, 16, MESHCOLL_INT32, MESHCOLL_SUM) == MESHCOLL_OK);
    NEED(fake_calls("cuPointerGetAttributes") == asked);
}

bool test_known_calls(void)
{
    setenv("MESHCOLL_ADAPT", "off", 1); /* else they are known once they have learned */
    const rig_t rig = {.mesh = "gpu=2"};
    return rig_run(&rig, rank_known_calls);
}

/* Blocks of unequal sizes, of which some are empty. */
void rank_unequal_blocks(meshcoll_t *mesh)
{
    const int size = meshcoll_size(mesh);
    size_t counts[8], total = 0;
    int32_t host[512];
    mc_cu_address_t in, out;
    for (int r = 0; r < size; r++)
        total += counts[r] = (size_t)r * 17;
    NEED(cuMemAlloc_v2(&in, sizeof host) == 0 && cuMemAlloc_v2(&out, sizeof host) == 0);
    for (int i = 0; i < 512; i++)
        host[i] = rig_rank * 1000 + i;
    for (int again = 0; again < 3; again++) {
        const meshcoll_args_t a = {.size = sizeof a,
                                   .collective = MESHCOLL_ALLGATHER,
                                   .in = (void *)(uintptr_t)in,
                                   .out = (void *)(uintptr_t)out,
                                   .count = counts[rig_rank],
                                   .datatype = MESHCOLL_INT32,
                                   .counts = counts};
        int32_t got[512];
        NEED(cuMemcpyHtoD_v2(in, host, sizeof host) == 0);
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK);
        NEED(cuMemcpyDtoH_v2(got, out, total * sizeof *got) == 0);
        const int32_t *at = got;
        for (int r = 0; r < size; r++)
            for (size_t i = 0; i < counts[r]; i++)
                NEED(*at++ == r * 1000 + (int)i);
    }
}

bool test_unequal_blocks(void)
{
    const rig_t rig = {.mesh = "box=2,gpu=2", .blocks = "2", .slot = "256"};
    return rig_run(&rig, rank_unequal_blocks);
}

/* Graphs, sub-meshes, guards ---------------------------------------------------------------------- */

static void rank_captured(meshcoll_t *mesh)
{
    const mc_case_t cases[] = {
        {.collective = MESHCOLL_ALLREDUCE, .count = 700, .datatype = MESHCOLL_INT32},
        {.collective = MESHCOLL_ALLGATHER, .count = 90, .datatype = MESHCOLL_INT32}};
    const mc_cu_stream_t stream = rig_new_stream();
    rig_case_t r[2];
    fake_graph_t graph;
    NEED(rig_enqueue(mesh, &cases[1], NULL, NULL)); /* in another stream */
    for (int k = 0; k < 2; k++)
        rig_open(mesh, &cases[k], NULL, &r[k]);
    NEED(cuStreamBeginCapture_v2(stream, 0) == 0);
    for (int k = 0; k < 2; k++)
        NEED(meshcoll_enqueue(mesh, &r[k].args, stream) == MESHCOLL_OK);
    NEED(meshcoll_async_error(mesh) == MESHCOLL_OK);
    NEED(cuStreamEndCapture(stream, &graph) == 0);
    for (int again = 0; again < 3; again++) {
        for (int k = 0; k < 2; k++)
            rig_fill(&r[k], stream);
        NEED(cuGraphLaunch(graph, stream) == 0);
        NEED(rig_check(&r[0], stream) && rig_check(&r[1], stream));
        NEED(rig_enqueue(mesh, &cases[0], NULL, stream));
    }
    for (int k = 0; k < 2; k++)
        rig_close(&r[k]);
    NEED(cuGraphDestroy(graph) == 0);
}

bool test_captured(void)
{
    const rig_t rig = {.mesh = "gpu=2", .blocks = "2"};
    return rig_run(&rig, rank_captured);
}

/* A thread keeps its mode, be it that the driver does not change it once. */
static void rank_capture_mode(meshcoll_t *mesh)
{
    for (mc_cu_capture_mode_t own = 0; own < MC_CU_CAPTURE_RELAXED; own++)
        for (int fails = 0; fails < 2; fails++) {
            mc_cu_capture_mode_t mode = own;
            NEED(cuThreadExchangeStreamCaptureMode(&mode) == 0);
            if (fails)
                fake_fail("cuThreadExchangeStreamCaptureMode", 0, MC_CU_ERROR_INVALID_VALUE);
            NEED(rig_works(mesh));
            NEED(cuThreadExchangeStreamCaptureMode(&mode) == 0 && mode == own);
        }
}

bool test_capture_mode(void)
{
    const rig_t rig = {.mesh = "gpu=2", .blocks = "2"};
    return rig_run(&rig, rank_capture_mode);
}

/* In a thread that has no context, which others of the program have. */
static void rank_no_context(meshcoll_t *mesh)
{
    enum { N = 100 };
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    int32_t host[N] = {0};
    mc_cu_context_t own, now;
    NEED(cuMemcpyHtoD_v2((mc_cu_address_t)a.in, host, sizeof host) == 0);
    NEED(rig_works(mesh) && cuCtxGetCurrent(&own) == 0 && cuCtxSetCurrent(NULL) == 0);
    for (int again = 0; again < 3; again++) {
        NEED(meshcoll_allreduce(mesh, a.in, a.out, N, a.datatype, a.op) == MESHCOLL_OK);
        NEED(meshcoll_allreduce(mesh, host, host, N, a.datatype, a.op) == MESHCOLL_OK);
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK);
    }
    NEED(meshcoll_barrier(mesh) == MESHCOLL_OK);
    NEED(cuCtxGetCurrent(&now) == 0 && now == NULL);
    NEED(cuCtxSetCurrent(own) == 0 && rig_works(mesh));
    rig_call_free();
    NEED(cuCtxSetCurrent(NULL) == 0); /* the mesh is destroyed so, too */
}

bool test_no_context(void)
{
    const rig_t rig = {.mesh = "gpu=2", .blocks = "2", .tidy = true};
    return rig_run(&rig, rank_no_context);
}

/* Calls of ever new counts, of whose end nobody asks: the memory of the programs before them is used again. */
static void rank_many_programs(meshcoll_t *mesh)
{
    enum { COUNTS = 300, AHEAD = 20 };
    const mc_cu_stream_t stream = rig_new_stream();
    meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(rig_works(mesh));
    const unsigned before = fake_calls("cuMemAlloc_v2");
    for (a.count = 1; a.count <= COUNTS; a.count++) {
        NEED(meshcoll_enqueue(mesh, &a, stream) == MESHCOLL_OK);
        if (a.count % AHEAD == 0)
            NEED(cuStreamSynchronize(stream) == 0);
    }
    NEED(fake_calls("cuMemAlloc_v2") - before < COUNTS / 2);
    NEED(cuStreamDestroy_v2(stream) == 0);
}

bool test_many_programs(void)
{
    const rig_t rig = {.mesh = "gpu=2", .blocks = "2"};
    return rig_run(&rig, rank_many_programs);
}

/* Sub-meshes beside their mesh, destroyed before it and with it. */
void rank_parts(meshcoll_t *mesh)
{
    meshcoll_t *row, *column;
    NEED(meshcoll_split(mesh, "gpu", &row) == MESHCOLL_OK);
    NEED(meshcoll_split(mesh, "box", &column) == MESHCOLL_OK);
    const int rank = rig_rank;
    for (unsigned turn = 0; turn < MESHCOLL_COLLECTIVES; turn++) {
        const mc_case_t on_all = turn_case(4, turn), on_two = turn_case(2, turn);
        NEED(rig_enqueue(mesh, &on_all, NULL, NULL));
        NEED(rig_enqueue(row, &on_two, NULL, NULL) && rig_enqueue(column, &on_two, NULL, NULL));
    }
    NEED(rank == rig_rank && fake_calls("cuModuleLoadData") == 1);
    meshcoll_destroy(row); /* the other one is left to the mesh */
}

bool test_parts(void)
{
    const rig_t rig = {.mesh = "box=2,gpu=2", .blocks = "2", .slot = "1024"};
    return rig_run(&rig, rank_parts);
}

/* What would be found: a library that touches device memory itself. */
static int touch(const void *context, mc_seat_t *seat)
{
    mc_cu_context_t own;
    mc_cu_address_t at;
    (void)context, (void)seat;
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would report it as an error */
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&own, 0) || cuCtxSetCurrent(own) ||
        cuMemAlloc_v2(&at, 64))
        return 1;
    *(volatile char *)(uintptr_t)at = 1;
    return 0;
}

bool test_guards(void)
{
    mc_meeting_t *const meeting = mc_processes_share(sizeof *meeting);
    pid_t pid;
    if (!fake_guards()) {
        printf("this processor or kernel has no protection keys: a host access to device memory "
               "is not noticed in these tests\n");
        return true;
    }
    mc_meeting_init(meeting, 1);
    mc_processes_fork(meeting, touch, NULL, &pid);
    const int how = mc_process_await(pid);
    printf("a host access to device memory ends with %d, expected -11\n", how);
    return how == -11;
}
