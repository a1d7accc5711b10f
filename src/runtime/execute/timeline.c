#include "runtime/execute/timeline.h"

#include <stdlib.h>
#include <string.h>

int mc_timeline_init(mc_timeline_t *timeline, const mc_plan_t *plan)
{
    const uint32_t n = plan ? plan->n_steps : 0;
    mc_step_times_t *const step = calloc((size_t)n + 1, sizeof *step);
    if (!step)
        return mc_fail_memory("a timeline");
    *timeline = (mc_timeline_t){.n_steps = n, .step = step};
    return MESHCOLL_OK;
}

void mc_timeline_free(mc_timeline_t *timeline)
{
    free(timeline->step);
    *timeline = (mc_timeline_t){0};
}

void mc_timeline_begin(mc_timeline_t *timeline)
{
    memset(timeline->step, 0, timeline->n_steps * sizeof *timeline->step);
    timeline->started = mc_now();
    timeline->ended = 0;
}
