/* What the library tells of calls on device memory: reports, and bytes sent. */
#include "rig.h"

#include <string.h>

/* Each must follow the one before it in the report. */
static void need_parts(meshcoll_t *mesh, const char *const *part)
{
    char *text;
    NEED(meshcoll_explain(mesh, &text) == MESHCOLL_OK);
    for (const char *at = text; *part; part++) {
        const char *const found = strstr(at, *part);
        if (!found)
            printf("expected \"%s\" after what came before it in:\n%s", *part, text);
        NEED(found);
        at = found + strlen(*part);
    }
    free(text);
}

static const mc_case_t sum = {
    .collective = MESHCOLL_ALLREDUCE, .count = 3000, .datatype = MESHCOLL_INT32};

/* In a stream, a stream that is captured, as a persistent request, and blocking. */
static void run_all_ways(meshcoll_t *mesh)
{
    meshcoll_request_t *request;
    mc_cu_stream_t stream;
    fake_graph_t graph;
    rig_case_t r;
    NEED(cuStreamCreate(&stream, MC_CU_STREAM_NON_BLOCKING) == 0);
    for (int i = 0; i < 3; i++)
        NEED(rig_enqueue(mesh, &sum, NULL, stream));
    rig_open(mesh, &sum, NULL, &r);
    NEED(cuStreamBeginCapture_v2(stream, 0) == 0);
    NEED(meshcoll_enqueue(mesh, &r.args, stream) == MESHCOLL_OK);
    NEED(cuStreamEndCapture(stream, &graph) == 0 && cuGraphDestroy(graph) == 0);
    NEED(meshcoll_init(mesh, &r.args, &request) == MESHCOLL_OK);
    for (int i = 0; i < 2; i++)
        NEED(meshcoll_enqueue_request(request, stream) == MESHCOLL_OK);
    NEED(cuStreamSynchronize(stream) == 0);
    meshcoll_free(request);
    NEED(meshcoll_allreduce(mesh, r.args.in, r.args.out, sum.count, sum.datatype, MESHCOLL_SUM) ==
         MESHCOLL_OK);
    rig_close(&r);
}

static void rank_explained(meshcoll_t *mesh)
{
    char why[256];
    fake_islands(3);
    fake_kernels(20 * 1000, 1);
    run_all_ways(mesh);
    NEED(rig_enqueue(mesh, &sum, "reduce_scatter:ring(gpu) allgather:ring(gpu)", NULL));
    fake_kernels(0, 1);
    NEED(mc_case_run(mesh, &sum, false, why, sizeof why) == 0);
    const char *const near_all[] = {
        "allreduce of 12 kB, on device memory: 6 runs, median ",
        " ms, fastest ",
        ", 1 more not timed\n",
        "by the device executor: 2 blocks, 12 passes, 4 slots of 512 B for each peer and block\n",
        "messages of 2 peers lie in memory of GPUs\n",
        "messages of 1 peer lie in pinned memory of the host\n",
        "forced by MESHCOLL_STRATEGY_ALLREDUCE",
        "the whole call",
        "allreduce of 12 kB, on device memory: 1 run, median ",
        "forced by meshcoll_args_t.strategy",
        "allreduce of 12 kB: 1 run, median",
        NULL};
    if (rig_rank == 0)
        need_parts(mesh, near_all);
}

/* Rank 0 reaches two of its three peers. */
bool test_explained(void)
{
    const rig_t rig = {.mesh = "gpu=4", .blocks = "2", .slot = "512", .explain = "1,/dev/null"};
    setenv("MESHCOLL_STRATEGY_ALLREDUCE", "flat-fullmesh", 1);
    const bool good = rig_run(&rig, rank_explained);
    unsetenv("MESHCOLL_STRATEGY_ALLREDUCE");
    return good;
}

/* Of the two ranks that rank 0 exchanges messages with, one is on another machine. */
static void rank_far_explained(meshcoll_t *mesh)
{
    const char *const by_both[] = {"messages of 1 peer lie in memory of GPUs\n",
                                   "messages of 1 peer lie in pinned memory of the host\n", NULL};
    NEED(rig_enqueue(mesh, &sum, "allreduce:fullmesh(box) allreduce:fullmesh(gpu)", NULL));
    if (rig_rank == 0)
        need_parts(mesh, by_both);
}

bool test_far_explained(void)
{
    const rig_t rig = {.mesh = "box=2,gpu=2",
                       .machines = "0011",
                       .blocks = "2",
                       .slot = "512",
                       .explain = "1,/dev/null"};
    return rig_can_part() ? rig_run(&rig, rank_far_explained) : rig_skip(RIG_CANNOT_PART);
}

/* A call on device memory counts what it would send from memory of the host. */
static void rank_counted(meshcoll_t *mesh)
{
    NEED(rig_enqueue(mesh, &sum, NULL, NULL)); /* the first call's ranks meet */
    for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
        const meshcoll_collective_t collective = (meshcoll_collective_t)k;
        const mc_case_t c = {.collective = collective,
                             .count = 999,
                             .datatype = MESHCOLL_FLOAT32,
                             .root = mc_case_is_rooted(collective) ? 1 : 0};
        uint64_t at[3][2], on_host = 0;
        char why[256];
        for (int i = 0; i < 3; i++) {
            for (int d = 0; d < 2; d++)
                at[i][d] = meshcoll_bytes_sent(mesh, d);
            if (i == 0)
                NEED(mc_case_run(mesh, &c, false, why, sizeof why) == 0);
            else if (i == 1)
                NEED(rig_enqueue(mesh, &c, NULL, NULL));
        }
        for (int d = 0; d < 2; d++) {
            NEED(at[2][d] - at[1][d] == at[1][d] - at[0][d]);
            on_host += at[1][d] - at[0][d];
        }
        NEED(on_host > 0 || mc_case_is_rooted(collective));
    }
}

bool test_counted(void)
{
    const rig_t rig = {.mesh = "box=2,gpu=3", .blocks = "2", .slot = "1024"};
    return rig_run(&rig, rank_counted);
}
