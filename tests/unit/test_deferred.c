/* Calls that wait for an agreement, and one of which begins another that is complete at once. */
#include "runtime/call/adapt.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <string.h>

enum { RANKS = 2, MOST_TURNS = 100000, BURST = 20, COUNT = 40, OTHER_COUNT = 30 };

static meshcoll_t *rank[RANKS];
static int32_t in[RANKS][COUNT], out[RANKS][3 * BURST][COUNT];

static void begin(int r, size_t count, int n, meshcoll_request_t **request)
{
    for (int i = 0; i < n; i++)
        cr_assert_eq(meshcoll_iallreduce(rank[r], in[r], out[r][i], count, MESHCOLL_INT32,
                                         MESHCOLL_SUM, &request[i]),
                     MESHCOLL_OK, "%s", meshcoll_last_error());
}

static void end(int n, meshcoll_request_t *request[RANKS][3 * BURST])
{
    for (int turn = 0, left = 1; left > 0; turn++) {
        cr_assert_lt(turn, MOST_TURNS, "hangs");
        left = 0;
        for (int r = 0; r < RANKS; r++) {
            const int status = meshcoll_testall(n, request[r]);
            cr_assert_geq(status, 0, "%s", meshcoll_last_error());
            left += status == MESHCOLL_IN_PROGRESS;
        }
    }
}

/* Two candidates, at the next call. */
static mc_learner_t *take_turns(int r)
{
    mc_lesson_t *const lesson = rank[r]->calls.adapt->lessons.lesson[0];
    mc_learner_t *const l = &lesson->learner;
    mc_ranked_t other = {.seconds = 1};
    cr_assert_eq(mc_strategy_parse("reduce:star(gpu) bcast:star(gpu)", MESHCOLL_ALLREDUCE,
                                   &rank[r]->mesh, &other.strategy),
                 MESHCOLL_OK);
    mc_learner_offer(l, &other, 1);
    cr_assert_eq(l->n, 2);
    lesson->left = 1;
    return l;
}

/* Their last ones, the one in use first. */
static void take_last_turns(int r)
{
    mc_learner_t *const l = take_turns(r);
    l->round = MC_TRIAL_FEW;
    l->turn[0] = 0;
    l->turn[1] = 1;
}

static meshcoll_request_t *request[RANKS][3 * BURST];

static void open_ranks(const meshcoll_params_t *params)
{
    cr_assert_eq(mc_inproc_create("gpu=2", params, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    for (int i = 0; i < COUNT; i++)
        in[0][i] = in[1][i] = i;
    for (int r = 0; r < RANKS; r++)
        begin(r, COUNT, 1, request[r]);
    end(1, request);
}

static void defer_some(void)
{
    open_ranks(NULL);
    for (int r = 0; r < RANKS; r++)
        take_last_turns(r);
    for (int i = 0; i < MC_LEARN_QUIET + MC_LEARN_LONG; i++) {
        for (int r = 0; r < RANKS; r++)
            begin(r, OTHER_COUNT, 1, request[r]);
        end(1, request);
    }
    /* the first of these begins an agreement, and those from the 17th on wait for it */
    for (int r = 0; r < RANKS; r++) {
        begin(r, OTHER_COUNT, BURST, request[r]);
        begin(r, COUNT, BURST, request[r] + BURST);
        cr_assert_eq(!rank[r]->calls.adapt->deferred.first, r > 0);
    }
}

Test(deferred, calls_are_served_one_after_the_other)
{
    defer_some();
    /* as if a persistent request was timed meanwhile */
    mc_adapt_t *const t = rank[0]->calls.adapt;
    meshcoll_request_t timed = {0};
    mc_lesson_t its = {0};
    t->timed.request = &timed;
    t->timed.lesson = &its;
    end(2 * BURST, request);
    cr_expect(!t->timed.request || t->timed.lesson == &its, "its time would be another's");
    for (int r = 0; r < RANKS; r++) {
        cr_expect_eq(rank[r]->calls.adapt->begun, 2);
        cr_expect_eq(rank[r]->calls.adapt->lessons.lesson[0]->candidate, 0);
        cr_expect_eq(out[r][BURST - 1][COUNT - 1], 2 * (COUNT - 1));
    }
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
}

/* What is forced meanwhile drops their requests from the cache, and is not theirs. */
Test(deferred, calls_keep_their_strategy)
{
    defer_some();
    const int last = 2 * BURST - 1;
    const uint32_t n = rank[0]->cache.n;
    const char *const text = meshcoll_request_strategy(request[0][last]);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(
            meshcoll_set_strategy(rank[r], MESHCOLL_ALLREDUCE, "reduce:mst(gpu) bcast:mst(gpu)"),
            MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_lt(rank[0]->cache.n, n);
    cr_expect_str_neq(text, "reduce:mst(gpu) bcast:mst(gpu)");
    end(2 * BURST, request);
    for (int r = 0; r < RANKS; r++) {
        cr_expect_eq(out[r][BURST - 1][COUNT - 1], 2 * (COUNT - 1));
        meshcoll_destroy(rank[r]);
    }
}

Test(deferred, calls_outlive_their_mesh)
{
    defer_some();
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 2 * BURST; i++)
            meshcoll_free(request[r][i]);
}

/* In their order: those before the agreement must be used, the one that waits for it, and those that rank 0's callback
 * begins meanwhile: one of another size, and as many as are of one candidate. */
enum { WAITS = MC_LEARN_AGREEING, OTHER, LATER, LAST = OTHER + MC_LEARN_LONG };
static bool has_called;

static void begin_later(void *context, meshcoll_request_t *received, int status)
{
    (void)context, (void)received;
    cr_assert_eq(status, MESHCOLL_OK);
    begin(0, OTHER_COUNT, 1, request[0] + OTHER);
    begin(0, COUNT, LAST - OTHER, request[0] + LATER);
    has_called = true;
}

/* Rank 1, while rank 0 waits: sends what rank 0's callback is for, and calls when that has run. */
static int follow(void *context)
{
    static meshcoll_request_t *sent;
    static int looks;
    static bool has_begun;
    (void)context;
    cr_assert_lt(looks++, MOST_TURNS, "hangs");
    if (!sent)
        return meshcoll_send_begin(rank[1], in[1], 1, MESHCOLL_INT32, 0, 0, &sent) == MESHCOLL_OK;
    if (!has_called || has_begun)
        return 0;
    begin(1, COUNT, WAITS + 1, request[1]);
    begin(1, OTHER_COUNT, 1, request[1] + OTHER);
    begin(1, COUNT, LAST - OTHER, request[1] + LATER);
    meshcoll_free(sent);
    return has_begun = true;
}

/* The next calls begin the barrier that compares all that were made, and wait for it. */
static void compare_calls(void)
{
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(meshcoll_iallreduce(rank[r], NULL, out[r][0], COUNT, MESHCOLL_INT32,
                                         MESHCOLL_SUM, request[r]),
                     MESHCOLL_ERR_INVALID_ARG);
        begin(r, COUNT, 1, request[r]);
    }
    end(1, request);
}

/* The candidates have taken turns, and ranks combine their times: so one takes turns after the other. */
Test(deferred, calls_of_callbacks_come_after_the_one_that_waits)
{
    const meshcoll_params_t params = {.size = sizeof params, .hook = follow};
    meshcoll_request_t *received;
    int32_t word;
    open_ranks(&params);
    for (int r = 0; r < RANKS; r++) {
        mc_learner_t *const l = take_turns(r);
        l->calls = 2 * MC_LEARN_SHORT;
        for (int i = 0; i < 2 * MC_LEARN_LONG; i++)
            mc_learner_note(l, i % 2, 1000 + i % 2);
    }
    begin(0, COUNT, WAITS, request[0]);
    cr_assert_eq(meshcoll_recv_begin(rank[0], &word, 1, MESHCOLL_INT32, 1, 0, NULL, &received),
                 MESHCOLL_OK);
    cr_assert_eq(meshcoll_set_callback(received, begin_later, NULL), MESHCOLL_OK);
    cr_assert_eq(meshcoll_allreduce(rank[0], in[0], out[0][0], COUNT, MESHCOLL_INT32, MESHCOLL_SUM),
                 MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert(has_called);
    for (int r = 0; r < RANKS; r++) {
        const bool others = strcmp(meshcoll_request_strategy(request[r][LAST]),
                                   "reduce:star(gpu) bcast:star(gpu)") == 0;
        const bool before = strcmp(meshcoll_request_strategy(request[r][LAST - 1]),
                                   "reduce:star(gpu) bcast:star(gpu)") == 0;
        cr_expect(others && !before, "rank %d: %s", r, meshcoll_request_strategy(request[r][LAST]));
    }
    cr_assert_eq(meshcoll_wait(received), MESHCOLL_OK);
    end(LAST + 1, request);
    compare_calls();
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
}
