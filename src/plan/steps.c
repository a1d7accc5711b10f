#include "plan/steps.h"

void mc_append(mc_builder_t *b, mc_step_t step)
{
    if (b->status)
        return;
    mc_step_t *const grown = mc_grown(b->step, b->n_steps, &b->capacity, sizeof *grown);
    if (!grown) {
        b->status = mc_fail_memory("the steps of a plan");
        return;
    }
    b->step = grown;
    step.phase = b->phase;
    b->step[b->n_steps++] = step;
}
