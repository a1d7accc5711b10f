/* Program order by the book: round and round the ranks until none can take its next step. Nothing is
 * shared with the verifier; messages are counted, not matched. */
#ifndef MC_TESTS_SUPPORT_PROGRAM_H
#define MC_TESTS_SUPPORT_PROGRAM_H

#include "plan/verify/world.h"

#include <stdlib.h>

/* What each rank has done so far. */
typedef struct {
    const mc_world_t *world;
    uint32_t window;
    uint32_t *at;           /* by rank */
    uint32_t *sent, *taken; /* by sender * n_ranks + receiver */
} walk_t;

static inline bool walk_step(const walk_t *w, int32_t rank)
{
    const mc_plan_t *const plan = w->world->plan[rank];
    if (w->at[rank] == plan->n_steps)
        return false;
    const mc_step_t *const s = &plan->step[w->at[rank]];
    const size_t n = (size_t)w->world->n_ranks, me = (size_t)rank, peer = (size_t)s->peer;
    if (mc_op_sends((mc_op_t)s->op)) {
        if (w->sent[me * n + peer] - w->taken[me * n + peer] >= w->window)
            return false;
        w->sent[me * n + peer]++;
    } else if (mc_op_receives((mc_op_t)s->op)) {
        if (w->sent[peer * n + me] == w->taken[peer * n + me])
            return false;
        w->taken[peer * n + me]++;
    }
    w->at[rank]++;
    return true;
}

/* Do all ranks reach the end with `window` messages in flight of each pair and direction? */
static inline bool program_completes(const mc_world_t *world, uint32_t window)
{
    const size_t n = (size_t)world->n_ranks;
    const walk_t w = {.world = world,
                      .window = window,
                      .at = calloc(n, sizeof *w.at),
                      .sent = calloc(n * n, sizeof *w.sent),
                      .taken = calloc(n * n, sizeof *w.taken)};
    bool moved = true, complete = true;
    while (moved) {
        moved = false;
        for (int32_t rank = 0; rank < world->n_ranks; rank++)
            while (walk_step(&w, rank))
                moved = true;
    }
    for (int32_t rank = 0; rank < world->n_ranks; rank++)
        complete = complete && w.at[rank] == world->plan[rank]->n_steps;
    free(w.taken);
    free(w.sent);
    free(w.at);
    return complete;
}

/* The least window, tried one after the other; 0: none up to `most` will do. */
static inline uint32_t program_least(const mc_world_t *world, uint32_t most)
{
    uint32_t window = 1;
    while (window <= most && !program_completes(world, window))
        window++;
    return window <= most ? window : 0;
}

#endif
