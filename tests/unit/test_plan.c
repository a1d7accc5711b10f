#include "compose/strategy.h"

#include <criterion/criterion.h>

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
    cr_assert(s->op == op && s->peer == peer && s->first == chunk && s->seq == seq,
              "step %u: %s peer %d chunk %u #%u", i, mc_op_name((mc_op_t)s->op), s->peer, s->first,
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

Test(plan, segments_do_not_depend_on_each_other)
{
    mc_plan_t *const plan = plan_of("x=4", MESHCOLL_ALLREDUCE, "allreduce:ring(x) segments=2", 1);
    cr_assert_eq(plan->n_steps, 24);
    for (uint32_t i = 0; i < 12; i++)
        for (uint32_t j = 12; j < 24; j++)
            cr_assert_not(follows(plan, i, j));
    mc_plan_free(plan);
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
