/* Programs of several tracks, on links so quick that tracks always pay. */
#include "rig.h"

#include <string.h>

enum { ROUNDS = 2 };

static const char *const strategies[] = {
    "reduce_scatter:ring(gpu) allreduce:fullmesh(box) allgather:ring(gpu) segments=4",
    "reduce_scatter:halving(gpu) reduce_scatter:ring(box) allgather:ring(box) "
    "allgather:doubling(gpu) segments=2",
    "reduce:mst(gpu) bcast:mst(gpu) allreduce:fullmesh(box) segments=3", "torus"};

static void need_tracks(meshcoll_t *mesh, const char *words)
{
    char *text;
    NEED(meshcoll_explain(mesh, &text) == MESHCOLL_OK);
    if (!strstr(text, words))
        printf("expected \"%s\" in:\n%s", words, text);
    NEED(strstr(text, words));
    free(text);
}

/* Between them a call of one track, in which blocks stand for other slices. */
static void rank_tracks(meshcoll_t *mesh)
{
    const mc_cu_stream_t stream = rig_new_stream();
    for (unsigned i = 0; i < ROUNDS * sizeof strategies / sizeof strategies[0]; i++) {
        const mc_case_t c = {.collective = MESHCOLL_ALLREDUCE,
                             .datatype = MESHCOLL_FLOAT32,
                             .op = i % 3 ? MESHCOLL_SUM : MESHCOLL_AVG,
                             .count = 1 + 1777 * i,
                             .in_place = i % 2};
        NEED(rig_enqueue(mesh, &c, strategies[i % 4], stream));
        NEED(rig_enqueue(mesh, &c,
                         "reduce_scatter:ring(gpu) allreduce:fullmesh(box) allgather:ring(gpu)",
                         stream));
    }
    if (rig_rank == 0)
        need_tracks(mesh, "6 blocks in 3 tracks");
    if (rig_rank == 0)
        need_tracks(mesh, "6 blocks in 2 tracks");
    if (rig_rank == 0)
        need_tracks(mesh, "6 blocks in 4 tracks");
}

/* A captured call, launched again beside others of the mesh: marks count launches, not calls. */
static void rank_captured_tracks(meshcoll_t *mesh)
{
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .count = 9001, .datatype = MESHCOLL_INT32};
    const mc_cu_stream_t stream = rig_new_stream();
    fake_graph_t graph;
    rig_case_t r;
    rank_tracks(mesh);
    rig_open(mesh, &c, strategies[0], &r);
    NEED(cuStreamBeginCapture_v2(stream, 0) == 0);
    NEED(meshcoll_enqueue(mesh, &r.args, stream) == MESHCOLL_OK);
    NEED(cuStreamEndCapture(stream, &graph) == 0);
    for (int again = 0; again < 3; again++) {
        rig_fill(&r, stream);
        NEED(cuGraphLaunch(graph, stream) == 0);
        NEED(rig_check(&r, stream));
        NEED(rig_enqueue(mesh, &c, strategies[1], stream));
    }
    rig_close(&r);
    NEED(cuGraphDestroy(graph) == 0);
}

static bool run(const rig_t *rig, void (*rank)(meshcoll_t *mesh))
{
    setenv("MESHCOLL_LINKS", "box=alpha:1ps;beta:1us/B,gpu=alpha:1ps;beta:1us/B", 1);
    const bool good = rig_run(rig, rank);
    unsetenv("MESHCOLL_LINKS");
    return good;
}

bool test_tracks(void)
{
    const rig_t rig = {.mesh = "box=2,gpu=2",
                       .blocks = "6",
                       .slot = "4096",
                       .tidy = true,
                       .explain = "1,/dev/null"};
    return run(&rig, rank_captured_tracks);
}

bool test_far_tracks(void)
{
    const rig_t rig = {.mesh = "box=2,gpu=2",
                       .machines = "0011",
                       .blocks = "6",
                       .slot = "4096",
                       .tidy = true,
                       .explain = "1,/dev/null"};
    return rig_can_part() ? run(&rig, rank_tracks) : rig_skip(RIG_CANNOT_PART);
}
