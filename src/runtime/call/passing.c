#include "runtime/call/passing.h"

#include "runtime/request/served.h"

#include <string.h>

_Static_assert(sizeof(size_t) == 8, "counts travel as MESHCOLL_UINT64");

/* In a single exchange the sender and receiver of a block know its size. */
static bool goes_straight(const mc_strategy_t *s)
{
    return s->n_phases == 0 ||
           (s->n_phases == 1 &&
            s->phase[0].algorithm == mc_algorithm_find(MESHCOLL_ALLTOALL, "pairwise", 8));
}

/* Is each chunk of SCRATCH written at most once? It has room for the blocks of two exchanges; later
 * ones overwrite it. */
static int check_once(const mc_plan_t *plan)
{
    uint64_t written = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        if (mc_op_writes((mc_op_t)s->op) && s->dst == MC_SCRATCH)
            written += (uint64_t)s->run * s->nrun;
    }
    if (written <= plan->n_scratch)
        return MESHCOLL_OK;
    return mc_fail(
        MESHCOLL_ERR_STRATEGY,
        "alltoallv: a block passes at most two other ranks on its way, so expected a strategy "
        "of at most three exchanges (alltoall:digits has one for each prime factor, alltoall:bruck "
        "two and more), as "
        "\"hierarchical\" has on this mesh, or \"flat-pairwise\"");
}

static meshcoll_args_t args_of(const mc_workspace_t *counts, int32_t root)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = MESHCOLL_ALLTOALL,
                             .in = counts->base,
                             .out = counts->base,
                             .count = 1,
                             .datatype = MESHCOLL_UINT64,
                             .root = root,               /* the root of the blocks' call */
                             .strategy = "the blocks'"}; /* a name for MESHCOLL_EXPLAIN */
}

/* Compares the received counts with the caller's. */
static int check_expected(const meshcoll_t *h, const meshcoll_args_t *a, const size_t *sent)
{
    for (int32_t r = 0; r < h->mesh.size; r++)
        if (sent[r] != a->counts[r])
            return mc_fail(
                MESHCOLL_ERR_INVALID_ARG,
                "alltoallv: rank %d sends %zu elements, but out_counts[%d] on this rank is "
                "%zu",
                r, sent[r], r, a->counts[r]);
    return MESHCOLL_OK;
}

static int open(meshcoll_t *h, const meshcoll_args_t *a, mc_passed_t *p)
{
    const size_t bytes = (size_t)h->mesh.size * sizeof a->in_counts[0];
    p->counts = mc_take_memory(h);
    if (!p->counts)
        return MESHCOLL_ERR_NO_MEMORY;
    const int status = mc_workspace_reserve(p->counts, bytes);
    if (!status)
        memcpy(p->counts->base, a->in_counts, bytes);
    return status;
}

/* Zeroes SCRATCH: where there is no block there must be no count, and a rank's own block may never
 * be in SCRATCH. */
static void clear(const mc_binding_t *binding)
{
    if (binding->scratch_bytes > 0)
        memset(binding->scratch, 0, binding->scratch_bytes);
}

static int run(meshcoll_t *h, const mc_strategy_t *strategy, int32_t root, uint32_t number,
               mc_passed_t *p)
{
    const meshcoll_args_t args = args_of(p->counts, root);
    int status = mc_call_prepare(h, &args, strategy, number, &p->request);
    if (status)
        return status;
    status = check_once(p->request->plan);
    if (!status)
        status = mc_call_bind(p->request, &args, NULL);
    if (!status)
        clear(&p->request->binding);
    if (!status)
        status = mc_request_start(p->request);
    return status ? status : mc_request_await(p->request);
}

int mc_passing_exchange(meshcoll_t *h, const meshcoll_args_t *a, const mc_strategy_t *strategy,
                        uint32_t number, mc_passed_t *passed)
{
    mc_passed_t p = {0};
    mc_strategy_t once = *strategy;
    once.segments = 1;
    if (goes_straight(strategy)) {
        *passed = p;
        return MESHCOLL_OK;
    }
    int status = open(h, a, &p);
    if (!status)
        status = run(h, &once, a->root, number, &p);
    if (!status)
        status = check_expected(h, a, (const size_t *)(const void *)p.counts->base);
    if (status) {
        mc_passing_end(h, &p);
        return status;
    }
    p.table = (mc_passing_t){.count = (const size_t *)(const void *)p.request->binding.scratch,
                             .before = p.request->binding.blocks[MC_SCRATCH].before,
                             .first = p.request->plan->scratch_first,
                             .n = p.request->plan->n_scratch};
    *passed = p;
    return MESHCOLL_OK;
}

void mc_passing_end(meshcoll_t *h, mc_passed_t *passed)
{
    if (passed->request)
        mc_request_drop(passed->request);
    if (passed->counts)
        mc_return_memory(h, passed->counts);
    *passed = (mc_passed_t){0};
}
