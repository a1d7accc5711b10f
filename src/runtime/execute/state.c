#include "runtime/execute/state.h"

void mc_executor_fail(mc_executor_t *x, int status)
{
    mc_executor_wake(x);
    if (x->state != MC_FAILED)
        x->status = status;
    x->state = MC_FAILED;
    for (uint32_t i = 0; i < x->n_lanes; i++)
        x->lane[i].n_allowed = x->lane[i].next;
    x->finished.first = x->credits.first = NULL;
    x->n_heap = 0;
}
