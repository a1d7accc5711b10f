#include "runtime/state/state.h"

void mc_executor_fail(mc_executor_t *x, int status)
{
    if (x->state != MC_FAILED)
        x->status = status;
    x->state = MC_FAILED;
    for (uint32_t i = 0; i < x->n_lanes; i++)
        x->lane[i].n_allowed = x->lane[i].next;
    x->finished = x->credits = (mc_io_queue_t){0};
    x->n_heap = 0;
}
