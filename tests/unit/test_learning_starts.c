/* Persistent requests that learn: starts that wait for an agreement, and what is left of a request. All ranks are in
 * this process. */
#include "runtime/call/adapt.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"
#include "support/inproc.h"
#include "support/learners.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, COUNT = 40, MOST_TURNS = 100000 };
/* The start that begins the first agreement. */
enum { FIRST = MC_LEARN_QUIET + MC_LEARN_LONG };

static meshcoll_t *rank[RANKS];
static meshcoll_request_t *request[RANKS];
static int32_t in[RANKS][COUNT], out[RANKS][COUNT];

static void open_with(meshcoll_op_t op, const size_t *counts)
{
    cr_assert_eq(mc_inproc_create("gpu=2", NULL, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < COUNT; i++)
            in[r][i] = r + i;
        const meshcoll_args_t args = {.size = sizeof args,
                                      .collective =
                                          counts ? MESHCOLL_REDUCE_SCATTER : MESHCOLL_ALLREDUCE,
                                      .in = in[r],
                                      .out = out[r],
                                      .count = counts ? counts[r] : COUNT,
                                      .counts = counts,
                                      .datatype = MESHCOLL_INT32,
                                      .op = op};
        cr_assert_eq(meshcoll_init(rank[r], &args, &request[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
    }
}

static mc_lead_t *lead_of(int r)
{
    return mc_persistent_of(request[r])->lead;
}

static const mc_learner_t *learner_of(int r)
{
    return &mc_study_of(lead_of(r))->lesson.learner;
}

static void start(void)
{
    for (int r = 0; r < RANKS; r++) {
        memset(out[r], -1, sizeof out[r]);
        cr_assert_eq(meshcoll_start(request[r]), MESHCOLL_OK, "%s", meshcoll_last_error());
    }
}

static void end(void)
{
    for (int turn = 0, left = 1; left > 0; turn++) {
        cr_assert_lt(turn, MOST_TURNS, "hangs");
        left = 0;
        for (int r = 0; r < RANKS; r++) {
            const int status = request[r] ? meshcoll_test(request[r]) : MESHCOLL_OK;
            cr_assert_geq(status, 0, "%s", meshcoll_last_error());
            left += status == MESHCOLL_IN_PROGRESS;
        }
    }
}

static void check_sums(void)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            cr_assert_eq(out[r][i], 2 * i + 1, "rank %d, element %d", r, i);
}

static bool has_agreed(int r)
{
    return (int32_t)(lead_of(r)->synced - lead_of(r)->told) > 0;
}

/* Runs until an agreement is complete, and makes as if it was not. */
static void run_to_agreement(void)
{
    for (int i = 0; i < FIRST + 1; i++) {
        start();
        end();
    }
    for (int turn = 0; turn < MOST_TURNS && !(has_agreed(0) && has_agreed(1)); turn++)
        for (int r = 0; r < RANKS; r++)
            (void)mc_job_progress(rank[r]->job);
    for (int r = 0; r < RANKS; r++) {
        cr_assert(has_agreed(r) && mc_learner_waits(learner_of(r)));
        lead_of(r)->synced--;
        mc_persistent_of(request[r])->left = 1;
    }
}

/* The barrier that carries the agreement is complete now. */
static void agree(mc_lead_t *lead)
{
    lead->synced++;
    mc_busy_reached(&lead->waiting);
}

static void close_all(void)
{
    for (int r = 0; r < RANKS; r++) {
        meshcoll_free(request[r]);
        meshcoll_destroy(rank[r]);
    }
}

static void poll_all(void)
{
    for (int turn = 0; turn < 100; turn++)
        for (int r = 0; r < RANKS; r++)
            cr_assert_eq(meshcoll_test(request[r]), MESHCOLL_IN_PROGRESS);
}

Test(learning_starts, are_deferred_until_ranks_agree)
{
    open_with(MESHCOLL_SUM, NULL);
    run_to_agreement();
    start();
    for (int r = 0; r < RANKS; r++) {
        cr_assert(lead_of(r)->awaited);
        cr_expect_not_null(meshcoll_request_strategy(request[r]));
        cr_expect_eq(meshcoll_start(request[r]), MESHCOLL_ERR_INVALID_ARG, "it is started already");
    }
    poll_all();
    agree(lead_of(0));
    poll_all();
    agree(lead_of(1));
    end();
    check_sums();
    for (int i = 0; i < 300; i++) {
        start();
        end();
        check_sums();
        cr_assert_str_eq(meshcoll_request_strategy(request[0]),
                         meshcoll_request_strategy(request[1]));
        cr_assert_eq(mc_learner_check(learner_of(0)), MESHCOLL_OK);
        cr_assert_neq(mc_persistent_of(request[0])->run.executor.digest, 0u);
    }
    close_all();
}

Test(learning_starts, are_deferred_and_freed)
{
    mc_lead_t *lead[RANKS];
    open_with(MESHCOLL_SUM, NULL);
    run_to_agreement();
    start();
    for (int r = 0; r < RANKS; r++) {
        lead[r] = lead_of(r);
        meshcoll_free(request[r]);
    }
    agree(lead[0]);
    agree(lead[1]);
    for (int turn = 0; turn < MOST_TURNS &&
                       (rank[0]->calls.adapt->studies.first || rank[1]->calls.adapt->studies.first);
         turn++)
        for (int r = 0; r < RANKS; r++)
            (void)mc_job_progress(rank[r]->job);
    check_sums();
    for (int r = 0; r < RANKS; r++) {
        meshcoll_destroy(rank[r]);
    }
}

Test(learning_starts, are_deferred_when_the_mesh_is_destroyed)
{
    open_with(MESHCOLL_SUM, NULL);
    run_to_agreement();
    start();
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
    for (int r = 0; r < RANKS; r++) {
        cr_expect_lt(meshcoll_wait(request[r]), 0);
        meshcoll_free(request[r]);
    }
}

Test(learning_starts, are_deferred_when_the_mesh_fails)
{
    open_with(MESHCOLL_SUM, NULL);
    run_to_agreement();
    start();
    for (int r = 0; r < RANKS; r++)
        mc_failure_break(rank[r], mc_fail(MESHCOLL_ERR_TRANSPORT, "enough"));
    for (int r = 0; r < RANKS; r++) {
        cr_expect_lt(meshcoll_wait(request[r]), 0);
        cr_expect_lt(meshcoll_start(request[r]), 0);
    }
    close_all();
}

static void add(void *context, void *dst, const void *a, const void *b, size_t count,
                meshcoll_datatype_t datatype)
{
    (void)context, (void)datatype;
    for (size_t i = 0; i < count; i++)
        ((int32_t *)dst)[i] = ((const int32_t *)a)[i] + ((const int32_t *)b)[i];
}

/* It is freed before they are planned anew. */
Test(learning_starts, have_an_operation_of_their_own)
{
    meshcoll_op_t op;
    cr_assert_eq(meshcoll_op_create(add, 1, NULL, &op), MESHCOLL_OK);
    open_with(op, NULL);
    cr_assert_eq(meshcoll_op_free(op), MESHCOLL_OK);
    run_to_agreement();
    start();
    agree(lead_of(0));
    agree(lead_of(1));
    end();
    check_sums();
    close_all();
}

Test(learning_starts, have_tables_of_their_own)
{
    size_t counts[RANKS] = {10, COUNT - 10};
    open_with(MESHCOLL_SUM, counts);
    memset(counts, 0, sizeof counts);
    run_to_agreement();
    start();
    agree(lead_of(0));
    agree(lead_of(1));
    end();
    cr_expect_eq(out[0][9], 2 * 9 + 1);
    cr_expect_eq(out[1][0], 2 * 10 + 1);
    close_all();
}

Test(learning_starts, are_known_when_their_request_is_freed)
{
    char kept[1024];
    mc_text_t text = mc_text(kept, sizeof kept);
    open_with(MESHCOLL_SUM, NULL);
    for (int r = 0; r < RANKS; r++) {
        mc_learner_t *const l = &mc_study_of(lead_of(r))->lesson.learner;
        l->phase = MC_LEARN_SETTLED;
        l->took[0] = 1500;
        mc_adapt_save(rank[r], &text);
        cr_expect(strncmp(kept, "allreduce 160 0 free 1500 ", 26) == 0, "%s", kept);
        meshcoll_free(request[r]);
        text = mc_text(kept, sizeof kept);
        mc_adapt_save(rank[r], &text);
        cr_expect(strncmp(kept, "allreduce 160 0 free 1500 ", 26) == 0, "%s", kept);
        cr_expect_str_eq(strchr(kept, '\n'), "\n", "it is there once");
        meshcoll_destroy(rank[r]);
    }
}

Test(learning_starts, are_as_planned_where_learning_is_off)
{
    setenv("MESHCOLL_ADAPT", "off", 1);
    open_with(MESHCOLL_SUM, NULL);
    for (int i = 0; i < 2 * FIRST; i++) {
        start();
        end();
    }
    cr_expect_null(lead_of(0)->words);
    close_all();
}
