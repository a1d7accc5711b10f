#include "plan/plan.h"

#include <stdlib.h>

void mc_plan_free(mc_plan_t *plan)
{
    free(plan);
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
