/* Each allocation in turn fails: whoever meets it says so, has nothing left over, and works again after. */
#include "compose/planner/planner.h"
#include "plan/verify/verify.h"
#include "runtime/call/adapt.h"
#include "runtime/place/boxes.h"
#include "support/allocations.h"
#include "support/inproc.h"
#include "support/processes.h"
#include "transport/shm/shm.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef MC_HAS_ALLOCATIONS

/* `tried` gives a status and frees what it made. */
static void expect_told(int (*tried)(const void *what), const void *what, const char *name)
{
    unsigned turn = 1, n_told = 0;
    for (bool failed = true; failed; turn++) {
        const long live = n_live;
        n_left = turn;
        const int status = tried(what);
        failed = n_left == 0;
        n_left = 0;
        /* qsort sorts without memory too */
        cr_assert(status == MESHCOLL_OK || (failed && status == MESHCOLL_ERR_NO_MEMORY),
                  "%s, %u: %d, %s", name, turn, status, meshcoll_last_error());
        n_told += status != MESHCOLL_OK;
        cr_assert_eq(n_live, live, "%s, %u: %ld left", name, turn, n_live - live);
    }
    cr_expect_gt(n_told, 0, "%s allocates nothing", name);
}

typedef struct {
    const char *mesh;
    meshcoll_collective_t collective;
    const char *strategy;
} planned_t;

static int make_plans(const void *what)
{
    const planned_t *const p = what;
    mc_mesh_t mesh;
    mc_strategy_t strategy;
    const mc_plan_t *plan[16] = {NULL};
    int32_t n = 0;
    int status = mc_mesh_parse(p->mesh, &mesh);
    if (!status)
        status = mc_strategy_parse(p->strategy, p->collective, &mesh, &strategy);
    for (; !status && n < mesh.size; n++)
        status = mc_strategy_plan(&strategy, &mesh, n, 1, (mc_plan_t **)&plan[n]);
    const mc_world_t world = {n, plan};
    if (!status)
        status = mc_verify(&world, NULL, NULL);
    for (int32_t r = 0; r < n; r++)
        mc_plan_free((mc_plan_t *)plan[r]);
    return status;
}

Test(no_memory, plans)
{
    static const planned_t planned[] = {
        {"x=2,y=2", MESHCOLL_ALLREDUCE, "torus segments=4"},
        {"x=2,y=3", MESHCOLL_ALLTOALL, "hierarchical segments=2"},
        {"x=3", MESHCOLL_ALLTOALL, "flat-bruck"},
        {"x=5", MESHCOLL_REDUCE_SCATTER, "reduce_scatter:aligned"},
        {"box=3+1", MESHCOLL_GATHER, "hierarchical segments=2"},
        {"box=3+1", MESHCOLL_ALLGATHER, "hierarchical"},
    };
    for (size_t i = 0; i < MC_COUNT(planned); i++) {
        cr_assert_eq(make_plans(&planned[i]), MESHCOLL_OK); /* sizes of boxes are kept for good */
        expect_told(make_plans, &planned[i], planned[i].strategy);
    }
}

static int choose(const planned_t *p, mc_mesh_t *mesh, mc_links_t *links, mc_ranked_t *best)
{
    const mc_planner_query_t query = {.bytes = 1e6, .max_segments = 16};
    int status = mc_mesh_parse(p->mesh, mesh);
    if (!status)
        status = mc_links_parse(p->strategy, mesh, links);
    if (!status)
        status = mc_planner_best(p->collective, mesh, links, &query, best);
    return status;
}

static int find_best(const void *what)
{
    const planned_t *const p = what;
    mc_mesh_t mesh;
    mc_links_t links;
    mc_ranking_t ranking;
    mc_ranked_t best;
    int status = choose(p, &mesh, &links, &best);
    const mc_planner_query_t query = {.bytes = 1e6, .max_segments = 16};
    if (!status)
        status = mc_planner_rank(p->collective, &mesh, &links, &query, &ranking);
    if (!status)
        free(ranking.list);
    return status;
}

/* Where ranks choose for themselves, one that runs short of memory does not choose otherwise: it has no choice. */
static void expect_no_other(const planned_t *p)
{
    mc_mesh_t mesh;
    mc_links_t links;
    mc_ranked_t best;
    int status = MESHCOLL_ERR_NO_MEMORY;
    for (unsigned turn = 1; status; turn++) {
        n_left = turn;
        status = choose(p, &mesh, &links, &best);
        const bool failed = n_left == 0;
        n_left = 0;
        cr_assert_eq(status, failed ? MESHCOLL_ERR_NO_MEMORY : MESHCOLL_OK, "%s, %u", p->mesh,
                     turn);
    }
}

Test(no_memory, choices)
{
    static const planned_t asked[] = {
        {"x=4,y=4", MESHCOLL_ALLREDUCE, "uniform"},
        {"box=4,gpu=4", MESHCOLL_BCAST, "lab,box=lab-net;burst:64KiB"},
        {"box=3+1", MESHCOLL_ALLREDUCE, "lab"},
        {"x=2,y=2,z=2", MESHCOLL_ALLREDUCE, "uniform"},
    };
    for (size_t i = 0; i < MC_COUNT(asked); i++) {
        cr_assert_eq(find_best(&asked[i]), MESHCOLL_OK, "%s", meshcoll_last_error());
        expect_told(find_best, &asked[i], asked[i].mesh);
        expect_no_other(&asked[i]);
    }
}

static int arrange(const char *order, const char *machines)
{
    mc_place_t place[7] = {{0}};
    mc_arranged_t arranged;
    for (int32_t r = 0; r < 7; r++)
        place[r] = (mc_place_t){.machine = machines[r] - '0', .node = -1, .package = -1};
    const int status = mc_arrange(NULL, order, place, 7, &arranged);
    if (!status)
        mc_arranged_free(&arranged);
    return status;
}

static int find_boxes(const void *what)
{
    return arrange(NULL, what);
}

static int find_ordered_boxes(const void *what)
{
    return arrange("6,0-5", what);
}

Test(no_memory, boxes)
{
    static const char *const machines[] = {"0000555", "0120120", "0000000"};
    for (size_t i = 0; i < MC_COUNT(machines); i++) {
        cr_assert_eq(find_boxes(machines[i]), MESHCOLL_OK);
        cr_assert_eq(find_ordered_boxes(machines[i]), MESHCOLL_OK);
        expect_told(find_boxes, machines[i], machines[i]);
        expect_told(find_ordered_boxes, machines[i], machines[i]);
    }
}

/* Collectives on blocks, equal or not, and groups, from the mesh's first to its last. */
static int create_and_init(const void *what)
{
    enum { MOST = 8 };
    const planned_t *const p = what;
    const size_t counts[MOST] = {3, 0, 5, 1, 2, 7, 1, 1};
    float in[64] = {0}, out[64];
    meshcoll_t *rank[MOST] = {NULL};
    meshcoll_request_t *request[MOST] = {NULL};
    int status = mc_inproc_create(p->mesh, NULL, rank);
    const int n = status ? 0 : meshcoll_size(rank[0]);
    for (int r = 0; r < n && !status; r++) {
        const meshcoll_args_t a = {.size = sizeof a,
                                   .collective = p->collective,
                                   .in = in,
                                   .out = out,
                                   .count = counts[r],
                                   .datatype = MESHCOLL_FLOAT32,
                                   .strategy = p->strategy,
                                   .counts = counts};
        status = meshcoll_init(rank[r], &a, &request[r]);
    }
    for (int r = 0; r < n; r++) {
        meshcoll_free(request[r]);
        meshcoll_destroy(rank[r]);
    }
    return status;
}

/* One end of the transport awaits the second of two messages, and has no memory for the first. */
Test(no_memory, early_messages)
{
    mc_transport_t *t[2];
    mc_peer_t *to, *from;
    mc_io_queue_t finished = {0};
    for (int32_t r = 0; r < 2; r++) {
        const mc_shm_params_t params = {.dim = "gpu", .n = 2, .rank = r, .access = MC_SHM_COPY};
        cr_assert_eq(mc_shm_create(&params, &t[r]), MESHCOLL_OK, "%s", meshcoll_last_error());
    }
    cr_assert_eq(t[0]->ops->connect(t[0], 1, t[1]->address, &to), MESHCOLL_OK);
    cr_assert_eq(t[1]->ops->connect(t[1], 0, t[0]->address, &from), MESHCOLL_OK);
    char byte = 1, got[2] = "";
    const mc_span_t out = {&byte, 1}, in[2] = {{&got[0], 1}, {&got[1], 1}};
    mc_message_t m = {.tag = 1, .span = &out, .n_spans = 1, .bytes = 1};
    mc_io_t io[2] = {{.finished = &finished}, {.finished = &finished}};
    cr_assert_eq(t[0]->ops->send(to, &m, &io[0]), MESHCOLL_OK);
    m.tag = 2;
    m.span = &in[1];
    cr_assert_eq(t[1]->ops->recv(from, &m, &io[1]), MESHCOLL_IN_PROGRESS);
    n_left = 1;
    cr_expect_eq(t[1]->ops->progress(t[1]), 1);
    cr_expect_eq(n_left, 0);
    cr_assert_eq(mc_io_pop(&finished), &io[1]);
    cr_expect_eq(io[1].status, MESHCOLL_ERR_NO_MEMORY);
    m.tag = 1;
    m.span = &in[0];
    cr_expect_eq(t[1]->ops->recv(from, &m, &io[0]), MESHCOLL_OK, "the first is not lost");
    cr_expect_eq(got[0], 1);
    for (int r = 0; r < 2; r++)
        t[r]->ops->close(t[r]);
}

Test(no_memory, persistent_requests)
{
    static const planned_t planned[] = {
        {"x=2,y=2", MESHCOLL_ALLGATHER, "hierarchical segments=2"},
        {"box=3+1", MESHCOLL_REDUCE_SCATTER, "hierarchical"},
        {"box=3+1", MESHCOLL_SCATTER, NULL},
    };
    for (size_t i = 0; i < MC_COUNT(planned); i++) {
        cr_assert_eq(create_and_init(&planned[i]), MESHCOLL_OK, "%s", meshcoll_last_error());
        expect_told(create_and_init, &planned[i], planned[i].mesh);
    }
}

/* Calls that come again --------------------------------------------------------------------------- */

enum { RANKS = 4, SHORT = 8, LONG = 4000 };

typedef struct {
    meshcoll_t *rank[RANKS];
    int32_t in[RANKS][LONG], out[RANKS][2][LONG];
    meshcoll_request_t *request[RANKS][2];
} calls_t;

static int begin(calls_t *c, int r, int which)
{
    const size_t count = which ? LONG : SHORT;
    c->request[r][which] = NULL;
    return meshcoll_iallreduce(c->rank[r], c->in[r], c->out[r][which], count, MESHCOLL_INT32,
                               MESHCOLL_SUM, &c->request[r][which]);
}

static void finish(calls_t *c)
{
    for (int left = 1; left > 0;) {
        left = 0;
        for (int r = 0; r < RANKS; r++)
            left += meshcoll_testall(2, c->request[r]) == MESHCOLL_IN_PROGRESS;
    }
}

/* A long call that is known gets the memory of a short one, which cannot grow; then it can. */
Test(no_memory, known_calls)
{
    static calls_t c;
    cr_assert_eq(mc_inproc_create("x=2,y=2", NULL, c.rank), MESHCOLL_OK);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(meshcoll_set_strategy(c.rank[r], MESHCOLL_ALLREDUCE, "flat-fullmesh"), 0);
        for (int i = 0; i < LONG; i++)
            c.in[r][i] = i + r;
    }
    for (int again = 0; again < 3; again++) {
        for (int which = 0; which < 2; which++)
            for (int r = 0; r < RANKS; r++)
                cr_assert_eq(begin(&c, r, which), MESHCOLL_OK);
        finish(&c);
    }
    for (int r = 0; r < RANKS; r++) {
        n_left = 1;
        cr_assert_eq(begin(&c, r, 1), MESHCOLL_ERR_NO_MEMORY);
        cr_assert_eq(n_left, 0);
    }
    memset(c.out, 0, sizeof c.out);
    for (int which = 0; which < 2; which++)
        for (int r = 0; r < RANKS; r++)
            cr_assert_eq(begin(&c, r, which), MESHCOLL_OK, "%s", meshcoll_last_error());
    finish(&c);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < LONG; i++)
            cr_assert_eq(c.out[r][1][i], RANKS * i + 6, "rank %d, element %d", r, i);
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(c.rank[r]);
}

/* The first call of a kind has been made, and the next one, for which there is no memory, asks the learner. */
static void begin_to_learn(calls_t *c, mc_learn_phase_t phase, uint32_t calls)
{
    cr_assert_eq(mc_inproc_create("x=2,y=2", NULL, c->rank), MESHCOLL_OK);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(begin(c, r, 0), MESHCOLL_OK);
    finish(c);
    for (int r = 0; r < RANKS; r++) {
        mc_lesson_t *const lesson = c->rank[r]->calls.adapt->lessons.lesson[0];
        lesson->learner.phase = phase;
        lesson->learner.calls = calls;
        lesson->left = 1;
        n_left = 1;
        cr_assert_eq(begin(c, r, 0), MESHCOLL_ERR_NO_MEMORY);
        cr_assert_eq(n_left, 0);
    }
}

/* Candidates that no rank had the memory to find are offered at the next call. */
Test(no_memory, candidates)
{
    static calls_t c;
    begin_to_learn(&c, MC_LEARN_WANTS, 0);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(begin(&c, r, 0), MESHCOLL_OK, "%s", meshcoll_last_error());
        cr_expect_eq(c.rank[r]->calls.adapt->lessons.lesson[0]->learner.phase, MC_LEARN_TURNS);
    }
    finish(&c);
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(c.rank[r]);
}

/* What waits for an agreement that a rank could not make would wait for ever: the mesh ends. */
Test(no_memory, agreements)
{
    static calls_t c;
    begin_to_learn(&c, MC_LEARN_TURNS, MC_LEARN_LONG);
    for (int r = 0; r < RANKS; r++) {
        cr_expect_eq(begin(&c, r, 0), MESHCOLL_ERR_NO_MEMORY);
        cr_expect_not_null(strstr(meshcoll_last_error(), "failed before"), "%s",
                           meshcoll_last_error());
        meshcoll_destroy(c.rank[r]);
    }
}

static int begin_short_of_memory(const void *how, mc_seat_t *seat)
{
    enum { WAYS = 2, PATIENCE_S = 20 };
    static const size_t count[WAYS] = {SHORT, LONG};
    static int32_t in[LONG], out[WAYS][LONG];
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "gpu=4", .transports = how};
    meshcoll_request_t *r[WAYS];
    meshcoll_t *mesh;
    alarm(PATIENCE_S); /* a hang is a failure */
    CHECK(meshcoll_create_oob(&oob, &params, &mesh) == MESHCOLL_OK);
    CHECK(meshcoll_set_strategy(mesh, MESHCOLL_ALLREDUCE, "flat-fullmesh") == MESHCOLL_OK);
    for (int again = 0; again < 3; again++) {
        for (int i = 0; i < WAYS; i++)
            CHECK(meshcoll_iallreduce(mesh, in, out[i], count[i], MESHCOLL_INT32, MESHCOLL_SUM,
                                      &r[i]) == MESHCOLL_OK);
        CHECK(meshcoll_waitall(WAYS, r) == MESHCOLL_OK);
    }
    n_left = seat->rank == 0;
    const int status =
        meshcoll_iallreduce(mesh, in, out[1], LONG, MESHCOLL_INT32, MESHCOLL_SUM, &r[1]);
    n_left = 0;
    if (seat->rank == 0)
        CHECK(status == MESHCOLL_ERR_NO_MEMORY);
    else
        CHECK((status ? status : meshcoll_wait(r[1])) == MESHCOLL_ERR_PEER);
    meshcoll_destroy(mesh);
    return 0;
}

/* The other ranks are told that one could not take part. */
Test(no_memory, known_calls_of_others)
{
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    cr_expect_eq(mc_processes_run(RANKS, begin_short_of_memory, "gpu=tcp,self"), 0);
}

#else

Test(no_memory, needs_glibc_and_its_own_allocator)
{
    cr_skip("skipped: malloc is a sanitizer's, or not glibc's: calls are not counted");
}

#endif
