/* Calls on device memory between machines: processes with host names of their own, over UCX on the loopback. */
#include "ranks.h"
#include "rig.h"

#include "base/base.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static bool run_all(const rig_t *rigs, size_t n, void (*rank)(meshcoll_t *mesh))
{
    bool good = true;
    if (!rig_can_part())
        return rig_skip(RIG_CANNOT_PART);
    for (size_t i = 0; i < n; i++)
        good = rig_run(&rigs[i], rank) && good;
    return good;
}
#define RUN(rigs, rank) run_all(rigs, sizeof(rigs) / sizeof(rigs)[0], rank)

/* Results ----------------------------------------------------------------------------------------- */

/* In two dimensions, on two ranks, and on a line whose machines alternate. GPUs of one machine only are opened,
 * and nothing is left. */
static void rank_far_collectives(meshcoll_t *mesh)
{
    rig_turns(mesh, 0, 4 * MESHCOLL_COLLECTIVES);
    NEED(fake_calls("cuIpcOpenMemHandle_v2") == (unsigned)meshcoll_size(mesh) / 2 - 1);
    NEED(fake_calls("cuMemHostRegister_v2") == 0);
}

bool test_far_collectives(void)
{
    const rig_t rigs[] = {
        {.mesh = "box=2,gpu=2", .machines = "0011", .blocks = "2", .slot = "512", .tidy = true},
        {.mesh = "x=4", .machines = "0101", .blocks = "3", .slot = "4096", .tidy = true},
        {.mesh = "box=2", .machines = "01", .blocks = "4", .slot = "65536", .tidy = true}};
    return RUN(rigs, rank_far_collectives);
}

static void rank_some(meshcoll_t *mesh)
{
    rig_turns(mesh, 0, 2 * MESHCOLL_COLLECTIVES);
}

bool test_far_ragged(void)
{
    const rig_t rigs[] = {
        {.mesh = "box=4+3+1", .machines = "00001112", .blocks = "2", .slot = "1024"}};
    return RUN(rigs, rank_some);
}

bool test_far_3d(void)
{
    const rig_t rigs[] = {
        {.mesh = "rack=2,box=2,gpu=2", .machines = "00112233", .blocks = "1", .slot = "2048"}};
    return RUN(rigs, rank_some);
}

bool test_far_types(void)
{
    const rig_t rigs[] = {{.mesh = "box=2", .machines = "01", .blocks = "2"}};
    return RUN(rigs, rank_types);
}

bool test_far_strategies(void)
{
    const rig_t rigs[] = {
        {.mesh = "box=2,gpu=2", .machines = "0011", .blocks = "2", .slot = "2048"}};
    return RUN(rigs, rank_strategies);
}

/* Blocks of unequal sizes: an allgather, an alltoall, and from and to a root. */
enum { MOST = 600 };
static void enqueue_unequal(meshcoll_t *mesh, meshcoll_args_t a, const int32_t *host, int32_t *got)
{
    mc_cu_address_t in, out;
    NEED(cuMemAlloc_v2(&in, MOST * sizeof *host) == 0 &&
         cuMemAlloc_v2(&out, MOST * sizeof *host) == 0);
    NEED(cuMemcpyHtoD_v2(in, host, MOST * sizeof *host) == 0);
    NEED(cuMemcpyHtoD_v2(out, got, MOST * sizeof *got) == 0);
    a.size = sizeof a;
    a.in = (void *)(uintptr_t)in;
    a.out = (void *)(uintptr_t)out;
    a.datatype = MESHCOLL_INT32;
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK);
    NEED(cuMemcpyDtoH_v2(got, out, MOST * sizeof *got) == 0);
    NEED(meshcoll_async_error(mesh) == MESHCOLL_OK);
    NEED(cuMemFree_v2(in) == 0 && cuMemFree_v2(out) == 0);
}

/* Rank a sends (a + 1) * (b + 1) elements to rank b: 1000 a + 10 b and so on. */
static void check_alltoallv(meshcoll_t *mesh)
{
    const int size = meshcoll_size(mesh);
    size_t sent[8], awaited[8];
    int32_t host[MOST] = {0}, got[MOST] = {0}, *at = host;
    for (int r = 0; r < size; r++) {
        sent[r] = awaited[r] = (size_t)((rig_rank + 1) * (r + 1));
        for (size_t i = 0; i < sent[r]; i++)
            *at++ = 1000 * rig_rank + 50 * r + (int)i;
    }
    enqueue_unequal(
        mesh,
        (meshcoll_args_t){
            .collective = MESHCOLL_ALLTOALL, .counts = awaited, .in_counts = sent, .count = 1},
        host, got);
    at = got;
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < awaited[r]; i++)
            NEED(*at++ == 1000 * r + 50 * rig_rank + (int)i);
}

/* Scatter or gather: rank r has 40 r elements. */
static void check_rooted(meshcoll_t *mesh, meshcoll_collective_t collective)
{
    const int size = meshcoll_size(mesh), root = size - 1;
    const bool gathers = collective == MESHCOLL_GATHER;
    size_t counts[8];
    int32_t host[MOST] = {0}, got[MOST] = {0}, *at = got;
    for (int r = 0; r < size; r++)
        counts[r] = (size_t)r * 40;
    for (int i = 0; i < MOST; i++)
        host[i] = gathers ? 1000 * rig_rank + i : i;
    enqueue_unequal(
        mesh,
        (meshcoll_args_t){
            .collective = collective, .counts = counts, .count = counts[rig_rank], .root = root},
        host, got);
    int before = 0;
    for (int r = 0; r < size; before += 40 * r++)
        for (int i = 0; i < 40 * r; i++) {
            if (gathers && rig_rank == root)
                NEED(*at++ == 1000 * r + i);
            if (!gathers && rig_rank == r)
                NEED(*at++ == before + i);
        }
}

static void rank_unequal(meshcoll_t *mesh)
{
    rank_unequal_blocks(mesh);
    for (int again = 0; again < 2; again++) {
        check_alltoallv(mesh);
        check_rooted(mesh, MESHCOLL_SCATTER);
        check_rooted(mesh, MESHCOLL_GATHER);
    }
}

bool test_far_unequal(void)
{
    const rig_t rigs[] = {
        {.mesh = "box=2,gpu=2", .machines = "0011", .blocks = "2", .slot = "256", .tidy = false},
        {.mesh = "box=2+1", .machines = "001", .blocks = "3", .slot = "128"}};
    return RUN(rigs, rank_unequal);
}

/* Many passes, with messages that are longer than what sockets hold. */
static void rank_long(meshcoll_t *mesh)
{
    const meshcoll_collective_t all[] = {MESHCOLL_ALLREDUCE, MESHCOLL_BCAST, MESHCOLL_ALLTOALL};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const mc_case_t c = {.collective = all[i], .count = 900001, .datatype = MESHCOLL_INT32};
        NEED(rig_enqueue(mesh, &c, NULL, NULL));
    }
}

bool test_far_long(void)
{
    const rig_t rigs[] = {{.mesh = "box=2", .machines = "01", .blocks = "4", .slot = "32768"},
                          {.mesh = "box=2", .machines = "01", .blocks = "2"}};
    return RUN(rigs, rank_long);
}

/* Other ways to call ------------------------------------------------------------------------------ */

bool test_far_in_flight(void)
{
    const rig_t rigs[] = {{.mesh = "box=2+1", .machines = "001", .blocks = "2", .slot = "1024"}};
    return RUN(rigs, rank_in_flight);
}

/* Calls on host memory while one on device memory is in flight, which waits in its stream. */
static void rank_mixed(meshcoll_t *mesh)
{
    mc_cu_stream_t stream;
    NEED(cuStreamCreate(&stream, MC_CU_STREAM_NON_BLOCKING) == 0);
    for (int again = 0; again < 6; again++) {
        const mc_case_t c = {.collective = again % 2 ? MESHCOLL_ALLTOALL : MESHCOLL_ALLREDUCE,
                             .count = 3000,
                             .datatype = MESHCOLL_INT32};
        rig_case_t r;
        fake_kernels(again % 3 == rig_rank ? 20 * 1000 : 0, 1);
        rig_open(mesh, &c, NULL, &r);
        rig_fill(&r, stream);
        NEED(meshcoll_enqueue(mesh, &r.args, stream) == MESHCOLL_OK);
        for (int i = 0; i < 5; i++) {
            const mc_case_t on_host = {.collective = i % 2 ? MESHCOLL_BCAST : MESHCOLL_ALLREDUCE,
                                       .count = 20000,
                                       .datatype = MESHCOLL_INT32};
            char why[256];
            NEED(mc_case_run(mesh, &on_host, false, why, sizeof why) == 0);
        }
        NEED(rig_check(&r, stream));
        rig_close(&r);
    }
}

bool test_far_mixed(void)
{
    const rig_t rigs[] = {
        {.mesh = "box=2,gpu=2", .machines = "0011", .blocks = "2", .slot = "1024"},
        {.mesh = "box=2", .machines = "01", .progress = "thread", .slot = "1024"}};
    return RUN(rigs, rank_mixed);
}

/* Sub-meshes of which one has ranks of one machine and the other of two, beside their mesh; and groups, made and
 * destroyed in turn. */
static void rank_far_parts(meshcoll_t *mesh)
{
    const int outer[] = {0, 3}, inner[] = {1, 2};
    const bool is_outer = rig_rank == 0 || rig_rank == 3;
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .count = 999, .datatype = MESHCOLL_INT32};
    rank_parts(mesh);
    for (int again = 0; again < 2; again++) {
        meshcoll_t *group;
        NEED(meshcoll_create_group(mesh, is_outer ? outer : inner, 2, 0, &group) == MESHCOLL_OK);
        NEED(rig_enqueue(group, &c, NULL, NULL) && rig_enqueue(mesh, &c, NULL, NULL));
        NEED(rig_enqueue(group, &c, NULL, NULL));
        meshcoll_destroy(group);
    }
}

bool test_far_parts(void)
{
    const rig_t rigs[] = {
        {.mesh = "box=2,gpu=2", .machines = "0011", .blocks = "2", .slot = "1024"}};
    return RUN(rigs, rank_far_parts);
}

bool test_far_blocking(void)
{
    const rig_t rigs[] = {{.mesh = "box=2+1", .machines = "001", .blocks = "2", .slot = "4096"}};
    return RUN(rigs, rank_blocking);
}

bool test_far_persistent(void)
{
    const rig_t rigs[] = {{.mesh = "box=2+1", .machines = "001", .blocks = "2", .slot = "4096"}};
    return RUN(rigs, rank_persistent);
}

/* Where a progress thread of the mesh runs beside the proxy. */
bool test_far_threads(void)
{
    const rig_t rigs[] = {{.mesh = "box=2+1",
                           .machines = "001",
                           .blocks = "2",
                           .slot = "4096",
                           .progress = "thread"}};
    return RUN(rigs, rank_progress_thread);
}

/* Where a launch returns when the kernel has ended, which waits for what the proxy brings. */
static void rank_launch_blocking(meshcoll_t *mesh)
{
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    rig_turns(mesh, 0, 2 * MESHCOLL_COLLECTIVES);
}

bool test_far_launch_blocking(void)
{
    const rig_t rigs[] = {{.mesh = "box=2+1", .machines = "001", .blocks = "2", .timeout = "20"}};
    return RUN(rigs, rank_launch_blocking);
}

/* The proxy's time ------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { MOST_IDLE_MS = 20 };

/* CPU time in 800 ms in which nothing is in flight: other programs on its cores may delay the last acknowledgements. */
static double idle_seconds(void)
{
    enum { TURNS = 10 };
    double spent = 1;
    for (int turn = 0; turn < TURNS && spent >= 1e-3 * MOST_IDLE_MS; turn++) {
        const double begun = cpu_seconds();
        usleep(800 * 1000);
        spent = cpu_seconds() - begun;
    }
    return spent;
}

static void nap(void *context)
{
    (void)context;
    usleep(800 * 1000);
}

/* It sleeps when nothing is in flight, and nearly so while a kernel waits behind others in its stream. */
static void rank_idle(meshcoll_t *mesh)
{
    const mc_case_t c = {.collective = MESHCOLL_ALLREDUCE, .count = 99, .datatype = MESHCOLL_INT32};
    rig_case_t r;
    NEED(rig_enqueue(mesh, &c, NULL, NULL));
    usleep(200 * 1000); /* the last acknowledgements */
    const double idle = idle_seconds();
    rig_open(mesh, &c, NULL, &r);
    rig_fill(&r, NULL);
    NEED(cuStreamSynchronize(NULL) == 0);
    NEED(cuLaunchHostFunc(NULL, nap, NULL) == 0);
    NEED(meshcoll_enqueue(mesh, &r.args, NULL) == MESHCOLL_OK);
    const double begun = cpu_seconds();
    usleep(700 * 1000);
    const double waiting = cpu_seconds() - begun;
    NEED(rig_check(&r, NULL));
    rig_close(&r);
    printf("rank %d: %.1f ms of 800 idle, %.1f ms of 700 while a kernel waits\n", rig_rank,
           1e3 * idle, 1e3 * waiting);
    NEED(idle < 1e-3 * MOST_IDLE_MS && waiting < 0.2);
}

bool test_far_idle(void)
{
    const rig_t rigs[] = {{.mesh = "box=2", .machines = "01", .blocks = "2"}};
    return RUN(rigs, rank_idle);
}

/* In the lab's boxes, each with a network of its own: tests/lab/test_gpu.sh. */
static void rank_lab(meshcoll_t *mesh)
{
    rig_turns(mesh, 0, 2 * MESHCOLL_COLLECTIVES);
    rank_long(mesh);
}

bool test_far_lab(void)
{
    const rig_t rigs[] = {
        {.mesh = "box=2,gpu=2", .machines = "0011", .blocks = "2", .slot = "16384"},
        {.mesh = "box=4,gpu=2", .machines = "00112233", .blocks = "2", .slot = "16384"}};
    if (!getenv("MC_RIG_BOXES"))
        return rig_skip("MC_RIG_BOXES does not name the lab's boxes");
    return RUN(rigs, rank_lab);
}
