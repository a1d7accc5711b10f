#include "compose/strategy/strategy.h"
#include "plan/builder.h"
#include "support/plans.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static mc_plan_t *plan_of(const char *mesh_text, meshcoll_collective_t collective, const char *text,
                          int32_t rank)
{
    mc_mesh_t mesh;
    mc_strategy_t strategy;
    mc_plan_t *plan;
    cr_assert_eq(mc_mesh_parse(mesh_text, &mesh), 0);
    cr_assert_eq(mc_strategy_parse(text, collective, &mesh, &strategy), 0, "%s",
                 meshcoll_last_error());
    cr_assert_eq(mc_strategy_plan(&strategy, &mesh, rank, 0, &plan), 0, "%s",
                 meshcoll_last_error());
    return plan;
}

static void expect_step(const mc_plan_t *plan, uint32_t i, mc_op_t op, int32_t peer, uint32_t chunk,
                        uint32_t seq)
{
    const mc_step_t *const s = &plan->step[i];
    const uint32_t at = s->op == MC_OP_RECV ? s->to : s->first;
    cr_assert(s->op == op && s->peer == peer && at == chunk && s->seq == seq,
              "step %u: %s peer %d chunk %u #%u", i, mc_op_name((mc_op_t)s->op), s->peer, at,
              s->seq);
}

/* REFERENCE §2: with 5 ranks, step 0 of reduce-scatter: rank 0 sends chunk 0 and receives 4. */
Test(plan, ring_allreduce_is_staggered_as_in_the_textbook)
{
    mc_plan_t *const plan = plan_of("x=5", MESHCOLL_ALLREDUCE, "allreduce:ring(x)", 0);
    cr_assert_eq(plan->n_steps, 16);
    for (uint32_t s = 0; s < 4; s++) {
        expect_step(plan, 2 * s, MC_OP_SEND, 1, (5 - s) % 5, s);
        expect_step(plan, 2 * s + 1, MC_OP_RECV_REDUCE, 4, 4 - s, s);
        expect_step(plan, 8 + 2 * s, MC_OP_SEND, 1, (1 + 5 - s) % 5, 4 + s);
        expect_step(plan, 8 + 2 * s + 1, MC_OP_RECV, 4, (5 - s) % 5, 4 + s);
    }
    mc_plan_free(plan);
}

static bool follows(const mc_plan_t *plan, uint32_t from, uint32_t to)
{
    for (uint32_t e = plan->succ_off[from]; e < plan->succ_off[from + 1]; e++)
        if (plan->succ[e] == to)
            return true;
    return false;
}

Test(plan, what_was_received_is_sent_on_after_it_came)
{
    mc_plan_t *const plan = plan_of("x=4", MESHCOLL_ALLREDUCE, "allreduce:ring(x)", 1);
    cr_assert(follows(plan, 1, 2), "the second send needs the first sum");
    cr_assert(follows(plan, 0, 7), "the chunk sent first is overwritten by the allgather");
    cr_assert_eq(plan->n_pred[0], 0);
    cr_assert_eq(plan->n_pred[3], 0, "receives of other chunks need not wait");
    mc_plan_free(plan);
}

static void expect_same_order(const mc_plan_t *a, const mc_plan_t *b, const char *what)
{
    cr_assert(a->n_steps == b->n_steps && a->n_edges == b->n_edges, "%s: %u edges, not %u", what,
              b->n_edges, a->n_edges);
    for (uint32_t i = 0; i < a->n_steps; i++)
        cr_assert(a->succ_off[i + 1] == b->succ_off[i + 1] && a->n_pred[i] == b->n_pred[i] &&
                      a->step[i].seq == b->step[i].seq,
                  "%s: step %u", what, i);
    for (uint32_t e = 0; e < a->n_edges; e++)
        cr_assert_eq(a->succ[e], b->succ[e], "%s: edge %u", what, e);
}

/* Seals the steps as they are and as if they were of one segment. */
static void expect_sealed_alike(const mc_plan_t *plan, const mc_step_t *step, const char *what)
{
    mc_plan_t whole = *plan, *by_segment, *at_once;
    whole.layout.per_segment *= whole.layout.segments;
    whole.layout.segments = 1;
    cr_assert_eq(mc_seal_steps(plan, step, plan->n_steps, &by_segment), MESHCOLL_OK);
    cr_assert_eq(mc_seal_steps(&whole, step, plan->n_steps, &at_once), MESHCOLL_OK);
    expect_same_order(at_once, by_segment, what);
    mc_plan_free(at_once);
    mc_plan_free(by_segment);
}

/* Segments alike are looked at once; some that are not, and steps in two segments, are found. */
Test(plan, sealing_by_segments_finds_the_same_order)
{
    static const struct {
        meshcoll_collective_t collective;
        const char *text;
    } row[] = {
        {MESHCOLL_ALLREDUCE,
         "reduce_scatter:ring(x) allreduce:doubling(y) allgather:ring(x) segments=5"},
        {MESHCOLL_ALLREDUCE, "reduce:star(x*y) bcast:mst(x*y) segments=4"},
        {MESHCOLL_ALLREDUCE, "torus segments=8"},
        {MESHCOLL_REDUCE_SCATTER, "reduce_scatter:ring(y) reduce_scatter:halving(x) segments=3"},
        {MESHCOLL_ALLTOALL, "alltoall:digits(x) alltoall:pairwise(y) segments=3"},
    };
    for (size_t i = 0; i < MC_COUNT(row); i++) {
        mc_plan_t *const plan = plan_of("x=3,y=4", row[i].collective, row[i].text, 7);
        mc_step_t *const step = malloc(plan->n_steps * sizeof *step);
        cr_assert_not_null(step);
        memcpy(step, plan->step, plan->n_steps * sizeof *step);
        expect_sealed_alike(plan, step, row[i].text);
        const uint32_t last = plan->n_steps - 1, middle = plan->n_steps / 2;
        const mc_step_t mine = step[last];
        step[last] = step[last - 1];
        step[last - 1] = mine;
        expect_sealed_alike(plan, step, "two steps in another order");
        step[middle] = (mc_step_t){.op = MC_OP_COPY,
                                   .src = MC_IN,
                                   .dst = MC_OUT,
                                   .peer = -1,
                                   .run = plan->n_chunks,
                                   .nrun = 1};
        expect_sealed_alike(plan, step, "a step in all segments");
        free(step);
        mc_plan_free(plan);
    }
}

Test(plan, segments_do_not_depend_on_each_other)
{
    mc_plan_t *const plan = plan_of("x=4", MESHCOLL_ALLREDUCE, "allreduce:ring(x) segments=2", 1);
    cr_assert_eq(plan->n_steps, 24);
    for (uint32_t i = 0; i < 12; i++)
        for (uint32_t j = 12; j < 24; j++)
            cr_assert_not(follows(plan, i, j));
    mc_plan_free(plan);
}

static void expect_traffic_on(const char *mesh, const char *text, meshcoll_collective_t collective,
                              uint8_t phase, int32_t crowd, uint16_t senders, uint16_t receivers)
{
    mc_plan_t *const plan = plan_of(mesh, collective, text, 0);
    cr_expect_eq(mc_mesh_sharers(&plan->layout.mesh, 0, plan->traffic[phase].rooted), crowd,
                 "%s, phase %d", text, phase);
    cr_expect_eq(plan->traffic[phase].senders, senders, "%s, phase %d", text, phase);
    cr_expect_eq(plan->traffic[phase].receivers, receivers, "%s, phase %d", text, phase);
    mc_plan_free(plan);
}

static void expect_traffic(const char *text, meshcoll_collective_t collective, uint8_t phase,
                           int32_t crowd, uint16_t senders, uint16_t receivers)
{
    expect_traffic_on("box=5,gpu=8", text, collective, phase, crowd, senders, receivers);
}

/* How many ranks of a box send across at once, how many send to one, and to how many one does. */
Test(plan, knows_who_sends_at_once)
{
    expect_traffic("alltoall:pairwise(box) alltoall:pairwise(gpu)", MESHCOLL_ALLTOALL, 0, 8, 1, 1);
    expect_traffic("gather:star(gpu) gather:star(box)", MESHCOLL_GATHER, 1, 1, 4, 1);
    expect_traffic("gather:mst(box) gather:star(gpu)", MESHCOLL_GATHER, 0, 8, 3, 1);
    expect_traffic("reduce:star(box*gpu)", MESHCOLL_REDUCE, 0, 8, 39, 1);
    expect_traffic("scatter:star(box) scatter:mst(gpu)", MESHCOLL_SCATTER, 0, 1, 1, 4);
    expect_traffic("bcast:mst(gpu) bcast:mst(box)", MESHCOLL_BCAST, 1, 8, 1, 3);
    expect_traffic("reduce:mst(gpu) reduce:chain(box)", MESHCOLL_REDUCE, 1, 1, 1, 1);
    expect_traffic("gather:mst(box*gpu)", MESHCOLL_GATHER, 0, 8, 6, 1);
    expect_traffic_on("box=4,gpu=8", "gather:mst(box*gpu)", MESHCOLL_GATHER, 0, 1, 5, 1);
    expect_traffic_on("box=4,gpu=8", "gather:star(box*gpu)", MESHCOLL_GATHER, 0, 8, 31, 1);
}

/* Of a tree over boxes and what is in them one rank of each box crosses, where both are powers of two. */
Test(plan, a_tree_over_boxes_leaves_each_by_one_rank)
{
    static const struct {
        meshcoll_collective_t collective;
        const char *text;
    } row[] = {{MESHCOLL_BCAST, "bcast:mst(box*gpu)"},
               {MESHCOLL_REDUCE, "reduce:mst(box*gpu)"},
               {MESHCOLL_REDUCE, "reduce:aligned(box*gpu)"},
               {MESHCOLL_SCATTER, "scatter:mst(box*gpu)"},
               {MESHCOLL_GATHER, "gather:mst(box*gpu)"}};
    for (size_t i = 0; i < MC_COUNT(row); i++)
        for (int32_t root = 0; root < 32; root += 5) {
            static plans_t p;
            plans_of(&p, &(case_t){"box=4,gpu=8", row[i].collective, root, row[i].text});
            cr_expect_eq(mc_mesh_sharers(&p.plan[0]->layout.mesh, 0, p.plan[0]->traffic[0].rooted),
                         1);
            int32_t crossing[4] = {0};
            for (int32_t r = 0; r < p.n; r++) {
                bool crosses = false;
                for (uint32_t t = 0; t < p.plan[r]->n_steps; t++) {
                    const mc_step_t *const s = &p.plan[r]->step[t];
                    crosses = crosses || (s->peer >= 0 && s->peer / 8 != r / 8);
                }
                crossing[r / 8] += crosses;
            }
            for (int32_t b = 0; b < 4; b++)
                cr_expect_eq(crossing[b], 1, "%s, root %d: %d ranks of box %d", row[i].text, root,
                             crossing[b], b);
            plans_free(&p);
        }
}

Test(plan, a_broadcast_that_cuts_nothing_has_one_chunk)
{
    mc_plan_t *const plan = plan_of("box=4,gpu=4", MESHCOLL_BCAST, "option1", 5);
    cr_assert_eq(plan->n_chunks, 1);
    cr_assert_eq(plan->n_scratch, 0);
    mc_plan_free(plan);
}

Test(plan, the_last_sum_of_a_reduce_scatter_goes_straight_to_the_output)
{
    mc_plan_t *const plan = plan_of("x=6", MESHCOLL_REDUCE_SCATTER, "flat-ring", 2);
    const mc_step_t *const last = &plan->step[plan->n_steps - 1];
    cr_assert_eq(last->op, MC_OP_RECV_REDUCE);
    cr_assert_eq(last->dst, MC_OUT);
    cr_assert_eq(last->to, 2);
    mc_plan_free(plan);
}

Test(plan, scratch_is_no_larger_than_what_is_passed_on)
{
    /* rank 7 of 8 is the root of the right half and keeps slices 4 to 7 for a while */
    mc_plan_t *const plan = plan_of("x=8", MESHCOLL_SCATTER, "flat-mst", 7);
    cr_assert_eq(plan->scratch_first, 4);
    cr_assert_eq(plan->n_scratch, 4);
    mc_plan_free(plan);
}

Test(plan, memory_follows_a_ranks_own_steps)
{
    mc_plan_t *const cube = plan_of("x=22,y=22,z=22", MESHCOLL_ALLREDUCE, "hierarchical", 4711);
    cr_assert_leq(cube->bytes, 16384, "%zu bytes", cube->bytes);
    mc_plan_free(cube);
    mc_plan_t *const ring = plan_of("x=10000", MESHCOLL_ALLREDUCE, "flat-ring", 4711);
    cr_assert_leq(ring->bytes, 2u << 20, "%zu bytes", ring->bytes);
    mc_plan_free(ring);
}

Test(plan, wrong_steps_are_not_sealed)
{
    mc_plan_t *const plan = plan_of("x=4", MESHCOLL_ALLREDUCE, "allreduce:ring(x)", 1);
    mc_plan_t *sealed = NULL;
    mc_step_t wrong = plan->step[0];
    wrong.peer = 4;
    cr_assert_eq(mc_seal_steps(plan, &wrong, 1, &sealed), MESHCOLL_ERR_PLAN);
    wrong = plan->step[0];
    wrong.first = 4;
    cr_assert_eq(mc_seal_steps(plan, &wrong, 1, &sealed), MESHCOLL_ERR_PLAN);
    wrong = plan->step[0];
    wrong.op = MC_OPS;
    cr_assert_eq(mc_seal_steps(plan, &wrong, 1, &sealed), MESHCOLL_ERR_PLAN);
    cr_assert_null(sealed);
    mc_plan_free(plan);
}

/* Star over many peers: the ordinals stay right when the table of peers has to grow. */
Test(plan, messages_are_numbered_for_each_peer)
{
    mc_plan_t *const plan = plan_of("x=100", MESHCOLL_ALLREDUCE, "flat-fullmesh segments=3", 50);
    uint32_t sent[100] = {0}, received[100] = {0};
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        if (mc_op_sends((mc_op_t)s->op))
            cr_assert_eq(s->seq, sent[s->peer]++);
        if (mc_op_receives((mc_op_t)s->op))
            cr_assert_eq(s->seq, received[s->peer]++);
    }
    cr_assert_eq(plan->n_peers, 99);
    for (uint32_t i = 0; i < 99; i++) {
        cr_assert_eq(plan->peer[i], (int32_t)(i < 50 ? i : i + 1));
        cr_assert_eq(sent[plan->peer[i]], 3);
        cr_assert_eq(received[plan->peer[i]], 3);
    }
    mc_plan_free(plan);
}
