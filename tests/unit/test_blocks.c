/* The v-variants: blocks of unequal sizes, empty ones among them, with gaps between and in any order. */
#include "runtime/call/request.h"
#include "support/inproc.h"
#include "support/strategies.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 12, ROOM = 1024, FILL = -77, SAMPLE = 8 };

typedef struct {
    meshcoll_t *rank[RANKS];
    mc_mesh_t mesh;
    int n;
} world_t;

typedef struct {
    meshcoll_collective_t collective;
    int n, root;
    bool in_place, packed;
    bool shared; /* blocks of in and out lie in turns in one workspace */
    /* by rank: the tables it gives; [0]: of in, which only alltoall has, [1]: `counts` and `displs` */
    size_t counts[2][RANKS][RANKS], displs[2][RANKS][RANKS];
    int32_t memory[2][RANKS][ROOM];
    const int32_t *in[RANKS];
    int32_t *out[RANKS];
} run_t;

static int32_t value(int rank, size_t i)
{
    return (int32_t)(i * 5 + (size_t)rank * 1000);
}

static const mc_move_t *move_of(const run_t *run)
{
    return &mc_moves[run->collective];
}

/* Back to back in rank order, or the last rank first and two elements between. */
static void lay_out(const run_t *run, const size_t *counts, size_t *displs)
{
    size_t end = 0;
    for (int i = 0; i < run->n; i++) {
        const int r = run->packed ? i : run->n - 1 - i;
        displs[r] = end;
        end += counts[r] + (run->packed ? 0 : 2);
    }
    cr_assert_lt(end, ROOM);
}

/* A block of in, then one of out. */
static void lay_out_in_turns(run_t *run, int r)
{
    size_t end = 0;
    for (int i = 0; i < 2 * run->n; i++) {
        run->displs[i % 2][r][i / 2] = end;
        end += run->counts[i % 2][r][i / 2];
    }
    cr_assert_lt(end, ROOM);
}

/* Where an empty block lies does not matter; but for a rank's own, by which the test finds its place. */
static void spoil_empty(run_t *run, int r)
{
    for (int k = 0; k < 2; k++)
        for (int s = 0; s < run->n; s++)
            if (s != r && run->counts[k][r][s] == 0)
                run->displs[k][r][s] = SIZE_MAX - (size_t)s;
}

/* How many elements rank `from` has for rank `to`; the same both ways where it is in place. */
static size_t exchanged(const run_t *run, int from, int to)
{
    return (size_t)(run->in_place ? from + to : from * 3 + to * 5) % 4;
}

static void make_tables(run_t *run, size_t scale)
{
    const bool exchange = run->collective == MESHCOLL_ALLTOALL;
    for (int r = 0; r < run->n; r++) {
        for (int s = 0; s < run->n; s++) {
            run->counts[0][r][s] = scale * exchanged(run, r, s);
            run->counts[1][r][s] =
                scale * (exchange ? exchanged(run, s, r) : (size_t)(s * 7 + 3) % 5);
        }
        for (int k = 0; k < 2; k++)
            lay_out(run, run->counts[k][r], run->displs[k][r]);
        if (run->shared)
            lay_out_in_turns(run, r);
        spoil_empty(run, r);
    }
}

static void place(run_t *run, int r)
{
    const mc_move_t *const move = move_of(run);
    const bool has_in = move->from != MC_ROOT || r == run->root;
    const bool has_out = move->to != MC_ROOT || r == run->root;
    run->in[r] = has_in ? run->memory[0][r] : NULL;
    run->out[r] = has_out ? run->memory[run->shared ? 0 : 1][r] : NULL;
    if (!run->in_place || !has_in || !has_out)
        return;
    if (move->to == MC_SHARD)
        run->out[r] = run->memory[0][r] + run->displs[1][r][r];
    else
        run->in[r] = run->memory[1][r] + (move->from == MC_SHARD ? run->displs[1][r][r] : 0);
}

static void fill(run_t *run)
{
    for (int r = 0; r < run->n; r++) {
        for (int i = 0; i < ROOM; i++)
            run->memory[0][r][i] = run->memory[1][r][i] = FILL;
        place(run, r);
        const size_t most = move_of(run)->from == MC_SHARD ? run->counts[1][r][r] : ROOM;
        for (size_t i = 0; run->in[r] && i < most; i++)
            ((int32_t *)run->in[r])[i] = value(r, i);
    }
}

/* Element k of rank s's block (or the one for s) in what rank r gets. */
static int32_t wanted(const run_t *run, int r, int s, size_t k)
{
    const size_t mine = run->displs[1][r][r] + k;
    int32_t sum = 0;
    switch (run->collective) {
    case MESHCOLL_SCATTER:
        return value(run->root, mine);
    case MESHCOLL_REDUCE_SCATTER:
        for (int t = 0; t < run->n; t++)
            sum += value(t, mine);
        return sum;
    case MESHCOLL_ALLTOALL:
        return value(s, run->displs[0][s][r] + k);
    default:
        return value(s, k);
    }
}

static void check(const run_t *run, const char *name)
{
    const bool blocks = move_of(run)->to != MC_SHARD;
    for (int r = 0; r < run->n; r++) {
        int32_t right[ROOM];
        if (!run->out[r])
            continue;
        memcpy(right, run->out[r], sizeof right / (blocks ? 1 : 4));
        for (int i = 0; i < ROOM && !run->in_place && !run->shared; i++)
            right[i] = FILL;
        for (int s = blocks ? 0 : r; s < (blocks ? run->n : r + 1); s++)
            for (size_t k = 0; k < run->counts[1][r][s]; k++)
                right[(blocks ? run->displs[1][r][s] : 0) + k] = wanted(run, r, s, k);
        for (int i = 0; i < ROOM / (blocks ? 1 : 4); i++)
            cr_assert_eq(run->out[r][i], right[i], "%s: rank %d: out[%d] is %d, expected %d", name,
                         r, i, run->out[r][i], right[i]);
    }
}

/* Of ranks without the buffer whose blocks they tell of, displs do not matter. */
static const size_t *displs_of(const run_t *run, int r)
{
    const size_t *const none = (const size_t *)sizeof none; /* where nothing is */
    if (run->packed)
        return NULL;
    return move_of(run)->rooted && r != run->root ? none : run->displs[1][r];
}

static meshcoll_args_t args_of(const run_t *run, int r, const char *strategy)
{
    const bool exchange = run->collective == MESHCOLL_ALLTOALL;
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = run->collective,
                             .in = run->in[r],
                             .out = run->out[r],
                             .count = exchange ? 0 : run->counts[1][r][r],
                             .datatype = MESHCOLL_INT32,
                             .root = run->root,
                             .strategy = strategy,
                             .counts = run->counts[1][r],
                             .displs = displs_of(run, r),
                             .in_counts = exchange ? run->counts[0][r] : NULL,
                             .in_displs = exchange && !run->packed ? run->displs[0][r] : NULL};
}

static void finish(meshcoll_request_t *const *request, int n, const char *name)
{
    int left = n;
    for (int turn = 0; left > 0; turn++) {
        left = 0;
        for (int r = 0; r < n; r++) {
            const int status = meshcoll_test(request[r]);
            cr_assert_geq(status, 0, "%s: %s", name, meshcoll_last_error());
            left += status == MESHCOLL_IN_PROGRESS;
        }
        cr_assert_lt(turn, 100000, "%s: hangs", name);
    }
}

static void run_once(const world_t *w, run_t *run, const char *strategy)
{
    meshcoll_request_t *request[RANKS];
    char name[2304];
    snprintf(name, sizeof name, "%s: %s%s%s", meshcoll_collective_name(run->collective),
             strategy ? strategy : "the planner's",
             run->shared     ? ", in one workspace"
             : run->in_place ? ", in place"
                             : "",
             run->packed ? ", packed" : "");
    fill(run);
    for (int r = 0; r < w->n; r++) {
        const meshcoll_args_t args = args_of(run, r, strategy);
        cr_assert_eq(meshcoll_init(w->rank[r], &args, &request[r]), MESHCOLL_OK, "%s: rank %d: %s",
                     name, r, meshcoll_last_error());
    }
    for (int r = 0; r < w->n; r++)
        cr_assert_eq(meshcoll_start(request[r]), MESHCOLL_OK);
    finish(request, w->n, name);
    check(run, name);
    for (int r = 0; r < w->n; r++)
        meshcoll_free(request[r]);
}

static void sweep_strategy(const world_t *w, run_t *run, const char *strategy)
{
    static const size_t scale[] = {0, 1, 9};
    char text[2048];
    for (size_t i = 0; i < MC_COUNT(scale); i++)
        for (int how = 0; how < (run->collective == MESHCOLL_ALLTOALL ? 5 : 4); how++) {
            run->in_place = how & 1;
            run->packed = how & 2;
            run->shared = how & 4;
            make_tables(run, scale[i]);
            snprintf(text, sizeof text, "%s%s", strategy ? strategy : "",
                     strategy && how > 1 ? (strchr(strategy, '|') ? " segments=4" : " segments=3")
                                         : "");
            run_once(w, run, strategy ? text : NULL);
        }
}

static void sweep(const char *mesh, meshcoll_collective_t collective)
{
    static run_t run;
    world_t w;
    mc_sample_t sample;
    cr_assert_eq(mc_mesh_parse(mesh, &w.mesh), MESHCOLL_OK);
    cr_assert_eq(mc_inproc_create(mesh, NULL, w.rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    w.n = w.mesh.size;
    run = (run_t){.collective = collective, .n = w.n};
    run.root = mc_moves[collective].rooted ? w.n / 2 : 0;
    cr_assert_eq(mc_sample_open(collective, &w.mesh, SAMPLE, &sample), 0);
    for (int i = 0; i < sample.n && collective != MESHCOLL_ALLTOALL; i++)
        if (!strstr(sample.text[i], "segments="))
            sweep_strategy(&w, &run, sample.text[i]);
    if (collective == MESHCOLL_ALLTOALL)
        sweep_strategy(&w, &run, "flat-pairwise");
    sweep_strategy(&w, &run, NULL);
    mc_sample_close(&sample);
    for (int r = 0; r < w.n; r++)
        meshcoll_destroy(w.rank[r]);
}

static void sweep_meshes(meshcoll_collective_t collective)
{
    sweep("gpu=1", collective);
    sweep("gpu=5", collective);
    sweep("box=3,gpu=4", collective);
    sweep("x=2,y=3,z=2", collective);
}

Test(blocks, scatterv)
{
    sweep_meshes(MESHCOLL_SCATTER);
}

Test(blocks, gatherv)
{
    sweep_meshes(MESHCOLL_GATHER);
}

Test(blocks, allgatherv)
{
    sweep_meshes(MESHCOLL_ALLGATHER);
}

Test(blocks, reduce_scatterv)
{
    sweep_meshes(MESHCOLL_REDUCE_SCATTER);
}

Test(blocks, alltoallv)
{
    sweep_meshes(MESHCOLL_ALLTOALL);
}

/* SCRATCH has room for the counts of two stops. */
Test(blocks, alltoallv_of_four_exchanges_is_refused)
{
    static int32_t in[16], out[16];
    size_t counts[16];
    meshcoll_t *rank[16];
    meshcoll_request_t *request;
    for (int r = 0; r < 16; r++)
        counts[r] = 1;
    cr_assert_eq(mc_inproc_create("gpu=16", NULL, rank), MESHCOLL_OK);
    const meshcoll_args_t a = {.size = sizeof a,
                               .collective = MESHCOLL_ALLTOALL,
                               .in = in,
                               .out = out,
                               .datatype = MESHCOLL_INT32,
                               .strategy = "alltoall:digits(gpu)",
                               .counts = counts,
                               .in_counts = counts};
    cr_expect_eq(meshcoll_init(rank[3], &a, &request), MESHCOLL_ERR_STRATEGY);
    cr_expect(strstr(meshcoll_last_error(), "at most three exchanges"), "%s",
              meshcoll_last_error());
    for (int r = 0; r < 16; r++)
        meshcoll_destroy(rank[r]);
}

static void expect_refused(meshcoll_t *mesh, const meshcoll_args_t *args, const char *why)
{
    meshcoll_request_t *request;
    cr_expect_lt(meshcoll_init(mesh, args, &request), 0);
    cr_expect(strstr(meshcoll_last_error(), why), "expected \"%s\" in \"%s\"", why,
              meshcoll_last_error());
}

/* In and out overlap where blocks of them do, not where one lies in a gap of the other. */
Test(blocks, may_lie_between_others)
{
    static const size_t counts[] = {1, 2, 3, 4}, displs[] = {2, 40, 10, 20};
    static int32_t v[64];
    meshcoll_t *rank[4];
    meshcoll_request_t *request;
    cr_assert_eq(mc_inproc_create("box=2,gpu=2", NULL, rank), MESHCOLL_OK);
    for (size_t at = 0; at < 64; at++) {
        const meshcoll_args_t a = {.size = sizeof a,
                                   .collective = MESHCOLL_ALLGATHER,
                                   .in = v + at,
                                   .out = v,
                                   .count = counts[2],
                                   .datatype = MESHCOLL_INT32,
                                   .counts = counts,
                                   .displs = displs};
        bool free = true;
        for (int r = 0; r < 4; r++)
            free = free && (at + counts[2] <= displs[r] || displs[r] + counts[r] <= at);
        const int status = meshcoll_init(rank[2], &a, &request);
        cr_expect_eq(status, free || at == displs[2] ? MESHCOLL_OK : MESHCOLL_ERR_INVALID_ARG,
                     "at %zu: %s", at, meshcoll_last_error());
        if (!status)
            meshcoll_free(request);
    }
    for (int r = 0; r < 4; r++)
        meshcoll_destroy(rank[r]);
}

Test(blocks, tables_are_checked)
{
    const size_t counts[] = {1, 2, 3, 4}, other[] = {4, 3, 2, 1}, huge[] = {1, 2, SIZE_MAX / 8, 4};
    int32_t v[64] = {0};
    meshcoll_t *rank[4];
    cr_assert_eq(mc_inproc_create("box=2,gpu=2", NULL, rank), MESHCOLL_OK);
    const meshcoll_args_t good = {.size = sizeof good,
                                  .collective = MESHCOLL_ALLGATHER,
                                  .in = v,
                                  .out = v + 32,
                                  .count = 2,
                                  .datatype = MESHCOLL_INT32,
                                  .counts = counts};
    meshcoll_args_t a = good;
    a.count = 3;
    expect_refused(rank[1], &a, "count is 3, but counts[1], of this rank, is 2");
    a = good;
    a.collective = MESHCOLL_BCAST;
    expect_refused(rank[1], &a, "counts of blocks are for");
    a = good;
    a.counts = huge;
    expect_refused(rank[1], &a, "overflows");
    a = good;
    a.in = v + 32 + 2;
    expect_refused(rank[1], &a, "in == out + displs[rank] elements");
    a = good;
    a.collective = MESHCOLL_ALLTOALL;
    expect_refused(rank[1], &a, "needs in_counts too");
    a.in_counts = other;
    expect_refused(rank[1], &a, "sends itself 3 elements, and expects 2");
    a.in_counts = counts;
    a.strategy = NULL;
    a.in = a.out;
    a.in_displs = other;
    expect_refused(rank[1], &a, "the same counts and displs");
    cr_expect_lt(meshcoll_allgatherv(rank[0], v, 1, v + 32, NULL, NULL, MESHCOLL_INT32), 0);
    cr_expect(strstr(meshcoll_last_error(), "allgatherv: counts are NULL"));
    a = good;
    a.size = offsetof(meshcoll_args_t, counts); /* of before there were tables */
    meshcoll_request_t *request;
    cr_expect_eq(meshcoll_init(rank[1], &a, &request), MESHCOLL_OK, "%s", meshcoll_last_error());
    meshcoll_free(request);
    for (int r = 0; r < 4; r++)
        meshcoll_destroy(rank[r]);
}
