/* The steps of a rank, as exports see them. */
#include "tools/export/export.h"

static int measure(const mc_request_t *e, mc_export_rank_t *r)
{
    const bool blocks = mc_move_has_blocks(&mc_moves[e->strategy.collective]);
    const uint64_t ranks = blocks ? (uint64_t)e->mesh.size : 1;
    const mc_operands_t operands = {.count = e->bytes / ranks + (e->bytes % ranks > 0),
                                    .datatype = MESHCOLL_UINT8,
                                    .op = MESHCOLL_SUM};
    return mc_binding_measure(&r->binding, &operands);
}

int mc_export_rank_open(const mc_request_t *e, int32_t rank, mc_export_rank_t *r)
{
    *r = (mc_export_rank_t){0};
    int status = mc_strategy_plan(&e->strategy, &e->mesh, rank, e->root, &r->plan);
    if (!status)
        status = mc_binding_init(&r->binding, r->plan);
    if (!status)
        status = measure(e, r);
    if (!status) {
        r->off = mc_arena_take(&r->arena, (size_t)r->plan->n_steps + 2, sizeof *r->off);
        r->pred = mc_arena_take(&r->arena, (size_t)r->plan->n_edges + 1, sizeof *r->pred);
        status = r->arena.failed ? mc_fail_memory("the steps of a rank") : MESHCOLL_OK;
    }
    if (status)
        mc_export_rank_close(r);
    else
        mc_plan_predecessors(r->plan, r->off, r->pred);
    return status;
}

void mc_export_rank_close(mc_export_rank_t *r)
{
    mc_arena_free(&r->arena);
    if (r->binding.plan)
        mc_binding_free(&r->binding);
    mc_plan_free(r->plan);
}

mc_export_step_t mc_export_step(const mc_request_t *e, const mc_export_rank_t *r, uint32_t step)
{
    const mc_step_t *const s = &r->plan->step[step];
    const mc_op_t op = (mc_op_t)s->op;
    const int32_t dim = s->peer < 0 ? e->strategy.phase[s->phase].dims.first
                                    : mc_mesh_level(&e->mesh, r->plan->rank, s->peer);
    mc_export_step_t is = {.bytes = r->binding.step[step].bytes};
    if (is.bytes == 0)
        return is;
    is.sends = mc_op_sends(op);
    is.receives = mc_op_receives(op);
    is.sums = op == MC_OP_RECV_REDUCE || mc_op_adds(op);
    is.seconds = is.sums ? (double)is.bytes * e->links.dim[dim].gamma : 0;
    return is;
}
