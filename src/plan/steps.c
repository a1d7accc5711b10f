#include "plan/steps.h"

#include <stdlib.h>

void mc_append(mc_builder_t *b, mc_step_t step)
{
    if (b->status)
        return;
    if (b->n_steps == b->capacity) {
        const uint32_t capacity = b->capacity ? 2 * b->capacity : 32;
        mc_step_t *const grown = realloc(b->step, capacity * sizeof *grown);
        if (!grown) {
            b->status = mc_fail_memory("the steps of a plan");
            return;
        }
        b->step = grown;
        b->capacity = capacity;
    }
    step.phase = b->phase;
    b->step[b->n_steps++] = step;
}
