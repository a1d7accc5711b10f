#include "compose/strategy/strategy.h"
#include "plan/explain.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static mc_plan_t *plan_of(const char *mesh_text, meshcoll_collective_t collective, int32_t root,
                          const char *strategy_text, int32_t rank)
{
    mc_mesh_t mesh;
    mc_strategy_t strategy;
    mc_plan_t *plan = NULL;
    cr_assert_eq(mc_mesh_parse(mesh_text, &mesh), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_eq(mc_strategy_parse(strategy_text, collective, &mesh, &strategy), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    cr_assert_eq(mc_strategy_plan(&strategy, &mesh, rank, root, &plan), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    return plan;
}

static char *explained(const mc_plan_t *plan)
{
    char *text = NULL;
    size_t length = 0;
    FILE *const out = open_memstream(&text, &length);
    cr_assert_not_null(out);
    cr_assert_eq(mc_explain_plan(plan, out), MESHCOLL_OK);
    fclose(out);
    return text;
}

Test(explain, brief_names_op_peer_chunks_and_ordinal)
{
    const struct {
        mc_step_t step;
        const char *text;
    } rows[] = {
        {{.op = MC_OP_SEND, .src = MC_OUT, .peer = 2, .first = 4, .run = 1, .nrun = 1, .seq = 3},
         "send -> 2 out[4] #3"},
        {{.op = MC_OP_RECV, .dst = MC_SCRATCH, .peer = 1, .to = 4, .run = 4, .nrun = 1},
         "recv <- 1 scratch[4..7] #0"},
        {{.op = MC_OP_RECV_REDUCE,
          .dst = MC_OUT,
          .peer = 5,
          .first = 4,
          .run = 4,
          .nrun = 1,
          .to = 4,
          .seq = 2},
         "recv_reduce <- 5 in[4..7] -> out[4..7] #2"},
        {{.op = MC_OP_COPY, .dst = MC_OUT, .peer = -1, .run = 2, .nrun = 3, .stride = 4},
         "copy in[0..1,4..5,8..9] -> out[0..1,4..5,8..9]"},
        {{.op = MC_OP_SEND, .src = MC_OUT, .peer = 2, .first = 8, .run = 4, .nrun = 1, .to = 5},
         "send -> 2 out[8..9,5..6] #0"},
        {{.op = MC_OP_RECV,
          .first = 10,
          .dst = MC_OUT,
          .peer = 2,
          .to = 8,
          .run = 2,
          .nrun = 3,
          .stride = 10},
         "recv <- 2 out[8..9,18..19,28..29] #0"},
        {{.op = MC_OP_RECV,
          .first = 10,
          .dst = MC_OUT,
          .peer = 2,
          .to = 4,
          .run = 1,
          .nrun = 4,
          .stride = 2},
         "recv <- 2 out[4,6,8,0] #0"},
        {{.op = MC_OP_REDUCE,
          .src = MC_SCRATCH,
          .dst = MC_OUT,
          .peer = -1,
          .first = 9,
          .run = 1,
          .nrun = 8,
          .stride = 2,
          .to = 1},
         "reduce scratch[9,11,...,23] -> out[1,3,...,15]"},
    };
    for (size_t i = 0; i < MC_COUNT(rows); i++) {
        char buffer[128];
        mc_text_t text = mc_text(buffer, sizeof buffer);
        mc_explain_brief(&rows[i].step, &text);
        cr_expect_str_eq(buffer, rows[i].text);
    }
}

Test(explain, plan_has_a_header_and_aligned_columns)
{
    mc_plan_t *const plan =
        plan_of("box=2,gpu=3", MESHCOLL_GATHER, 4, "gather:mst(gpu) gather:mst(box)", 1);
    char *const text = explained(plan);
    cr_expect_str_eq(text, "gather on box=2,gpu=3, rank 1 of 6, root 4: 6 chunks, in home, out none"
                           ", scratch 0..2, 3 peers, 4 steps, 3 dependencies\n"
                           "  0  recv         <- 0   scratch[0]           #0\n"
                           "  1  recv         <- 2   scratch[2]           #0\n"
                           "  2  copy                in[1] -> scratch[1]\n"
                           "  3  send         -> 4   scratch[0..2]        #0   after 0 1 2\n");
    free(text);
    mc_plan_free(plan);
}

/* Column at which `what` starts in each line; all alike, or -1. */
static long column_of(const char *text, const char *what)
{
    long column = -1;
    for (const char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        const char *const end = strchr(line, '\n');
        const char *const at = strstr(line, what);
        if (!at || at > end)
            continue;
        if (column >= 0 && column != at - line)
            return -1;
        column = at - line;
    }
    return column;
}

Test(explain, columns_hold_in_long_plans)
{
    mc_plan_t *const plan = plan_of("x=120", MESHCOLL_ALLREDUCE, 0, "allreduce:ring(x)", 101);
    char *const text = explained(plan);
    uint32_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    cr_expect_eq(lines, plan->n_steps + 1);
    cr_expect_gt(column_of(text, "#"), 0);
    cr_expect_gt(column_of(text, "after"), column_of(text, "#"));
    free(text);
    mc_plan_free(plan);
}

Test(explain, segments_are_in_the_header)
{
    mc_plan_t *const plan = plan_of("x=3", MESHCOLL_BCAST, 0, "bcast:chain(x) segments=2", 1);
    char *const text = explained(plan);
    cr_expect_str_eq(text, "bcast on x=3, rank 1 of 3, root 0: 2 chunks in 2 segments, in none, "
                           "out whole, 2 peers, 4 steps, 2 dependencies\n"
                           "  0  recv         <- 0   out[0]  #0\n"
                           "  1  send         -> 2   out[0]  #0   after 0\n"
                           "  2  recv         <- 0   out[1]  #1\n"
                           "  3  send         -> 2   out[1]  #1   after 2\n");
    free(text);
    mc_plan_free(plan);
}
