/* What an earlier job has learned is used by calls of its kind alone, and kept on. All ranks are in this process. */
#include "runtime/call/adapt.h"
#include "support/six.h"

#include <criterion/criterion.h>
#include <string.h>

enum { COUNT = 40, MOST_TURNS = 100000 };

static const char known[] =
    "allreduce 160 0 free 1500 reduce:mst(gpu) allreduce:fullmesh(box) bcast:mst(gpu)\n"
    "bcast 7 3 free 900 bcast:mst(box*gpu)\n";

static int32_t in[RANKS][COUNT], out[RANKS][COUNT];

/* What all ranks take for such a sum. */
static void check_strategy(bool persistent, size_t count, const char *expected, bool equal)
{
    meshcoll_request_t *request[RANKS];
    for (int r = 0; r < RANKS; r++) {
        const int status = persistent
                               ? meshcoll_allreduce_init(rank[r], in[r], out[r], count,
                                                         MESHCOLL_INT32, MESHCOLL_SUM, &request[r])
                               : meshcoll_iallreduce(rank[r], in[r], out[r], count, MESHCOLL_INT32,
                                                     MESHCOLL_SUM, &request[r]);
        cr_assert_eq(status, MESHCOLL_OK, "%s", meshcoll_last_error());
        cr_expect_eq(strcmp(meshcoll_request_strategy(request[r]), expected) == 0, equal,
                     "rank %d: %s", r, meshcoll_request_strategy(request[r]));
    }
    for (int turn = 0, left = RANKS; left > 0 && !persistent; turn++) {
        cr_assert_lt(turn, MOST_TURNS, "hangs");
        left = 0;
        for (int r = 0; r < RANKS; r++)
            left += meshcoll_testall(1, &request[r]) == MESHCOLL_IN_PROGRESS;
    }
    for (int r = 0; r < RANKS && persistent; r++)
        meshcoll_free(request[r]);
}

Test(known, is_used_by_calls_of_its_kind)
{
    static const char other[] = "reduce:mst(gpu) allreduce:fullmesh(box) bcast:mst(gpu)";
    world_open();
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(mc_adapt_load(rank[r], known), MESHCOLL_OK, "%s", meshcoll_last_error());
    check_strategy(false, COUNT, other, true);
    check_strategy(true, COUNT, other, true);
    check_strategy(false, COUNT - 1, other, false);
    world_close();
}

/* Another version's planner may have begun with other sums, as calls that find no room to learn would. */
Test(known, of_another_order_of_sums_is_not_used)
{
    static const char star[] = "reduce:star(box*gpu) bcast:star(box*gpu)";
    static float sum[RANKS][COUNT];
    world_open();
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(mc_adapt_load(rank[r], "allreduce 160 0 ordered 1500 reduce:star(box*gpu) "
                                            "bcast:star(box*gpu)\n"),
                     MESHCOLL_OK, "%s", meshcoll_last_error());
    for (int r = 0; r < RANKS; r++) {
        meshcoll_request_t *request;
        cr_assert_eq(meshcoll_allreduce_init(rank[r], sum[r], sum[r], COUNT, MESHCOLL_FLOAT32,
                                             MESHCOLL_SUM, &request),
                     MESHCOLL_OK, "%s", meshcoll_last_error());
        cr_expect_str_neq(meshcoll_request_strategy(request), star);
        meshcoll_free(request);
    }
    world_close();
}

/* A file that was changed, or links that were. */
Test(known, that_no_trial_would_find_is_not_used)
{
    static const char *const forged[] = {
        "allreduce 160 0 free 1 reduce:star(box*gpu) bcast:star(box*gpu) segments=65535\n",
        "allreduce 160 0 free 1 reduce_scatter:ring(box*gpu) allgather:ring(box*gpu) "
        "segments=40\n"};
    static const char *const text[] = {
        "reduce:star(box*gpu) bcast:star(box*gpu) segments=65535",
        "reduce_scatter:ring(box*gpu) allgather:ring(box*gpu) segments=40"};
    for (size_t i = 0; i < MC_COUNT(forged); i++) {
        world_open();
        for (int r = 0; r < RANKS; r++)
            cr_assert_eq(mc_adapt_load(rank[r], forged[i]), MESHCOLL_OK, "%s",
                         meshcoll_last_error());
        check_strategy(false, COUNT, text[i], false);
        check_strategy(true, COUNT, text[i], false);
        world_close();
    }
}

Test(known, is_kept_for_the_next_job)
{
    char kept[1024];
    mc_text_t text = mc_text(kept, sizeof kept);
    world_open();
    cr_assert_eq(mc_adapt_load(rank[0], known), MESHCOLL_OK);
    mc_adapt_save(rank[0], &text);
    cr_expect_str_eq(kept, known);
    text = mc_text(kept, sizeof known - 2); /* no room for the last line */
    mc_adapt_save(rank[0], &text);
    cr_expect_eq(strncmp(kept, known, strlen(kept)), 0);
    cr_expect_eq(strlen(kept), strcspn(known, "\n") + 1);
    world_close();
}

Test(known, is_kept_where_the_job_ends_in_a_look)
{
    char kept[1024];
    mc_text_t text = mc_text(kept, sizeof kept);
    world_open();
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(mc_adapt_load(rank[r], known), MESHCOLL_OK);
    check_strategy(false, COUNT, "reduce:mst(gpu) allreduce:fullmesh(box) bcast:mst(gpu)", true);
    mc_learner_t *const l = &rank[0]->calls.adapt->lessons.lesson[0]->learner;
    l->phase = MC_LEARN_TURNS; /* of its one candidate */
    mc_adapt_save(rank[0], &text);
    cr_expect_str_eq(kept, known);
    world_close();
}

Test(known, refuses_what_it_does_not_understand)
{
    static const char *const wrong[] = {
        "allreduce 160 0 free 1500",
        "allreduce 160 0 free 0 allreduce:ring(box*gpu)",
        "allreduce 160 6 free 1500 allreduce:ring(box*gpu)",
        "allreduce 160 0 often 1500 allreduce:ring(box*gpu)",
        "nothing 160 0 free 1500 allreduce:ring(box*gpu)",
        "allreduce 160 0 free 1500 allreduce:ring(elsewhere)",
        "bcast 160 0 free 1500 bcast:star(box*gpu)\nrubbish",
    };
    world_open();
    cr_assert_eq(mc_adapt_load(rank[0], known), MESHCOLL_OK);
    for (size_t i = 0; i < MC_COUNT(wrong); i++)
        cr_expect_lt(mc_adapt_load(rank[0], wrong[i]), 0, "%s", wrong[i]);
    cr_expect_eq(rank[0]->calls.adapt->known.n, 2, "it keeps what it has");
    world_close();
}
