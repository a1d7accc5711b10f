/* The verifier: its entry point, and the checks of plans and steps one by one. */
#include "plan/verify/verify.h"

#include "plan/verify/check.h"

/* What IN and OUT must hold, by collective: at the root, and elsewhere. */
typedef struct {
    mc_holds_t in_root, in, out_root, out;
} buffers_t;

static const buffers_t buffers[MESHCOLL_COLLECTIVES] = {
    [MESHCOLL_BCAST] = {MC_HOLDS_WHOLE, MC_HOLDS_NONE, MC_HOLDS_WHOLE, MC_HOLDS_WHOLE},
    [MESHCOLL_REDUCE] = {MC_HOLDS_WHOLE, MC_HOLDS_WHOLE, MC_HOLDS_WHOLE, MC_HOLDS_NONE},
    [MESHCOLL_SCATTER] = {MC_HOLDS_WHOLE, MC_HOLDS_NONE, MC_HOLDS_HOME, MC_HOLDS_HOME},
    [MESHCOLL_GATHER] = {MC_HOLDS_HOME, MC_HOLDS_HOME, MC_HOLDS_WHOLE, MC_HOLDS_NONE},
    [MESHCOLL_ALLGATHER] = {MC_HOLDS_HOME, MC_HOLDS_HOME, MC_HOLDS_WHOLE, MC_HOLDS_WHOLE},
    [MESHCOLL_REDUCE_SCATTER] = {MC_HOLDS_WHOLE, MC_HOLDS_WHOLE, MC_HOLDS_HOME, MC_HOLDS_HOME},
    [MESHCOLL_ALLREDUCE] = {MC_HOLDS_WHOLE, MC_HOLDS_WHOLE, MC_HOLDS_WHOLE, MC_HOLDS_WHOLE},
    [MESHCOLL_ALLTOALL] = {MC_HOLDS_WHOLE, MC_HOLDS_WHOLE, MC_HOLDS_WHOLE, MC_HOLDS_WHOLE},
};

static bool same_layout(const mc_layout_t *a, const mc_layout_t *b)
{
    bool same = a->segments == b->segments && a->per_segment == b->per_segment &&
                a->sides == b->sides && a->mesh.ndims == b->mesh.ndims &&
                a->mesh.size == b->mesh.size && a->mesh.ragged == b->mesh.ragged &&
                a->mesh.leader == b->mesh.leader;
    for (int32_t d = 0; same && d < a->mesh.ndims; d++)
        same = a->mesh.dim[d].extent == b->mesh.dim[d].extent && a->extent[d] == b->extent[d];
    for (uint32_t side = 0; same && side < a->sides; side++)
        for (int32_t d = 0; same && d < a->mesh.ndims; d++)
            same = a->stride[side][d] == b->stride[side][d];
    return same;
}

static int check_buffers(const mc_plan_t *plan)
{
    static const char *const name[] = {"nothing", "its home chunks", "the whole vector"};
    const buffers_t *const expected = &buffers[plan->collective];
    const bool at_root = plan->rank == plan->root;
    const mc_holds_t in = at_root ? expected->in_root : expected->in;
    const mc_holds_t out = at_root ? expected->out_root : expected->out;
    if (plan->in != in || plan->out != out)
        return mc_fail(MESHCOLL_ERR_PLAN,
                       "rank %d: the plan of a %s must hold %s in IN and %s in OUT here",
                       plan->rank, meshcoll_collective_name(plan->collective), name[in], name[out]);
    const bool blocks =
        in == MC_HOLDS_HOME || out == MC_HOLDS_HOME || plan->collective == MESHCOLL_ALLTOALL;
    if (blocks && plan->layout.per_segment != (uint32_t)mc_mesh_places(&plan->layout.mesh))
        return mc_fail(MESHCOLL_ERR_PLAN,
                       "rank %d: a %s cuts the vector into a chunk for each of %d ranks, found %u",
                       plan->rank, meshcoll_collective_name(plan->collective),
                       mc_mesh_places(&plan->layout.mesh), plan->layout.per_segment);
    return MESHCOLL_OK;
}

/* Do the plans belong to one collective, for the ranks 0 to n_ranks - 1? */
static int check_heads(const mc_world_t *world)
{
    const mc_plan_t *const model = world->n_ranks > 0 ? world->plan[0] : NULL;
    if (!model)
        return mc_fail(MESHCOLL_ERR_PLAN, "a world has at least one rank, and a plan for each");
    for (int32_t r = 0; r < world->n_ranks; r++) {
        const mc_plan_t *const plan = world->plan[r];
        if (!plan || plan->rank != r || plan->layout.mesh.size != world->n_ranks)
            return mc_fail(MESHCOLL_ERR_PLAN, "rank %d: expected its plan for %d ranks, found %s",
                           r, world->n_ranks, plan ? "that of another rank or mesh" : "none");
        if ((uint32_t)plan->collective >= MESHCOLL_COLLECTIVES ||
            plan->collective != model->collective || plan->root != model->root ||
            plan->n_chunks != mc_layout_chunks(&plan->layout) || plan->n_chunks == 0 ||
            !same_layout(&plan->layout, &model->layout))
            return mc_fail(MESHCOLL_ERR_PLAN,
                           "rank %d: its plan has another collective, root or layout than rank 0's",
                           r);
        const int status = check_buffers(plan);
        if (status)
            return status;
    }
    return MESHCOLL_OK;
}

static int check_range(const mc_plan_t *plan, uint32_t step, uint8_t buffer, mc_range_t r)
{
    if (buffer >= MC_BUFFERS)
        return mc_fail_step(plan, step, "names buffer %u: expected less than %d", buffer,
                            MC_BUFFERS);
    if (r.run == 0 || r.nrun == 0 || (r.nrun > 1 && r.stride < r.run) || !mc_range_fits(r))
        return mc_fail_step(
            plan, step,
            "has %u runs of %u chunks, %u apart, on rings of %u (0: none): expected at least one "
            "of each, and no overlap",
            r.nrun, r.run, r.stride, r.ring);
    const uint64_t lo = buffer == MC_SCRATCH ? plan->scratch_first : 0;
    const uint64_t hi = buffer == MC_SCRATCH ? lo + plan->n_scratch : plan->n_chunks;
    const uint64_t end = mc_range_end(r);
    if (mc_range_begin(r) < lo || end > hi)
        return mc_fail_step(plan, step, "accesses %s[%u..%llu]: expected within [%llu..%llu]",
                            mc_buffer_name((mc_buffer_t)buffer), mc_range_begin(r),
                            (unsigned long long)end - 1, (unsigned long long)lo,
                            (unsigned long long)hi - 1);
    return MESHCOLL_OK;
}

static int check_peer(const mc_plan_t *plan, uint32_t step)
{
    const mc_step_t *const s = &plan->step[step];
    const bool message = mc_op_sends((mc_op_t)s->op) || mc_op_receives((mc_op_t)s->op);
    const bool other = s->peer >= 0 && s->peer < plan->layout.mesh.size && s->peer != plan->rank;
    if (message && !other)
        return mc_fail_step(plan, step, "has peer %d: expected another rank of %d", s->peer,
                            plan->layout.mesh.size);
    if (!message && s->peer != -1)
        return mc_fail_step(plan, step, "has peer %d: expected -1 for a local step", s->peer);
    return MESHCOLL_OK;
}

static int check_step(const mc_plan_t *plan, uint32_t step)
{
    const mc_step_t *const s = &plan->step[step];
    const mc_op_t op = (mc_op_t)s->op;
    const uint8_t allowed = s->op == MC_OP_RECV_REDUCE ? MC_MESSAGE_FIRST : 0;
    if (s->op >= MC_OPS || (s->flags & ~allowed))
        return mc_fail_step(plan, step, "has op %u and flags %u: expected an op below %d and %s%u",
                            s->op, s->flags, MC_OPS, allowed ? "at most " : "", allowed);
    int status = check_peer(plan, step);
    if (!status && mc_op_reads(op))
        status = check_range(plan, step, s->src, mc_step_from(s));
    if (!status && mc_op_writes(op))
        status = check_range(plan, step, s->dst, mc_step_to(s));
    if (status)
        return status;
    if (mc_op_writes(op) && s->dst == MC_IN)
        return mc_fail_step(plan, step, "writes IN, which is read only");
    /* in an alltoall any chunk may hold any block on its way */
    const bool moves = op == MC_OP_COPY && plan->collective == MESHCOLL_ALLTOALL;
    if (!moves && mc_op_reads(op) && mc_op_writes(op) &&
        s->first % plan->n_chunks != s->to % plan->n_chunks)
        return mc_fail_step(plan, step, "mixes chunks: expected chunk %u on both sides, found %u",
                            s->first % plan->n_chunks, s->to % plan->n_chunks);
    return MESHCOLL_OK;
}

static int check_peers(const mc_plan_t *plan)
{
    for (uint32_t i = 0; i < plan->n_peers; i++) {
        const int32_t peer = plan->peer[i];
        if (peer < 0 || peer >= plan->layout.mesh.size || peer == plan->rank ||
            (i > 0 && peer <= plan->peer[i - 1]))
            return mc_fail(MESHCOLL_ERR_PLAN,
                           "rank %d: peer %u of its list is %d: expected other ranks, ascending",
                           plan->rank, i, peer);
    }
    return MESHCOLL_OK;
}

/* Each step on its own: ops, buffers, ranges, peers. */
static int check_steps(const mc_plan_t *plan)
{
    int status = check_peers(plan);
    for (uint32_t i = 0; i < plan->n_steps && !status; i++)
        status = check_step(plan, i);
    return status;
}

static int verify_runs(const mc_world_t *world, const mc_verify_options_t *options,
                       uint32_t *window)
{
    mc_match_t match = {0};
    int status = mc_match_create(world, &match);
    if (status)
        return status;
    status = mc_check_runs(world, &match, options);
    if (!status)
        status = mc_check_program(world, &match, MC_PROGRAM_WINDOW, window);
    mc_arena_free(&match.arena);
    return status;
}

int mc_verify(const mc_world_t *world, const mc_verify_options_t *options, uint32_t *window)
{
    static const mc_verify_options_t usual = {.random_orders = 1, .seed = 1};
    uint32_t unasked;
    int status = check_heads(world);
    for (int32_t r = 0; r < world->n_ranks && !status; r++)
        status = check_steps(world->plan[r]);
    if (!status)
        status = mc_check_dependencies(world);
    if (!status)
        status = verify_runs(world, options ? options : &usual, window ? window : &unasked);
    return status;
}
