#include "plan/plan.h"

#include <stdlib.h>

void mc_plan_free(mc_plan_t *plan)
{
    free(plan);
}

int32_t mc_plan_crowd(const mc_plan_t *plan, uint8_t phase, int32_t d)
{
    const mc_mesh_t *const mesh = &plan->layout.mesh;
    int32_t ranks = 1;
    while (++d < mesh->ndims)
        ranks *= plan->traffic[phase].rooted >> d & 1 ? 1 : mesh->dim[d].extent;
    return ranks;
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
