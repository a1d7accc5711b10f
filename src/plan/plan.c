#include "plan/plan.h"

#include <stdlib.h>

void mc_plan_free(mc_plan_t *plan)
{
    free(plan);
}

uint32_t mc_plan_peer(const mc_plan_t *plan, int32_t rank)
{
    uint32_t lo = 0, hi = plan->n_peers;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (plan->peer[mid] < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void mc_plan_predecessors(const mc_plan_t *plan, uint32_t *off, uint32_t *pred)
{
    uint32_t *const fill = off + 1; /* each entry ends as the offset of the next step */
    off[0] = fill[0] = 0;
    for (uint32_t i = 0; i + 1 < plan->n_steps; i++)
        fill[i + 1] = fill[i] + plan->n_pred[i];
    for (uint32_t i = 0; i < plan->n_steps; i++)
        for (uint32_t e = plan->succ_off[i]; e < plan->succ_off[i + 1]; e++)
            pred[fill[plan->succ[e]]++] = i;
}

const char *mc_op_name(mc_op_t op)
{
    static const char *const name[] = {"send", "recv",   "recv_reduce",
                                       "copy", "reduce", "reduce_behind"};
    return (size_t)op < MC_COUNT(name) ? name[op] : "?";
}

const char *mc_buffer_name(mc_buffer_t buffer)
{
    static const char *const name[] = {"in", "out", "scratch"};
    return (size_t)buffer < MC_COUNT(name) ? name[buffer] : "?";
}
