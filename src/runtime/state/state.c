#include "runtime/state/state.h"

void mc_executor_fail(mc_executor_t *x, int status)
{
    if (x->state != MC_FAILED)
        x->status = status;
    x->state = MC_FAILED;
    for (mc_lane_t *lane = x->lane; lane < x->lane + x->n_lanes; lane++)
        lane->n_allowed = lane->next;
    x->finished = x->credits = (mc_io_queue_t){0};
    x->n_heap = 0;
}
