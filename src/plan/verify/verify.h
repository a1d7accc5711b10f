/*
 * The verifier. It proves for one world of plans that every contribution arrives exactly once, the
 * final placement is reached, messages match, chunks stay within bounds, and inputs stay
 * unmodified, in place and out of place. It also proves progress with unbuffered (rendezvous)
 * messages and a window of one message per peer and direction, and, for the orders it samples, that
 * any order the dependencies allow gives the same values. It proves progress in program order too,
 * with MC_PROGRAM_WINDOW messages in flight.
 *
 * Useless work is an error too: a copy of a value onto itself, and a value that is overwritten, or
 * left in SCRATCH, before a step reads it. Two cases are allowed: a message may carry what its
 * receiver has (an allgather after an MST scatter does, and its cost formula includes it), and a
 * copy between the halves of SCRATCH may find its value there (an alltoall of four or more phases).
 */
#ifndef MC_PLAN_VERIFY_H
#define MC_PLAN_VERIFY_H

#include "plan/verify/world.h"

typedef struct {
    uint32_t random_orders; /* random runs that respect dependencies, beyond the two fixed ones */
    uint64_t seed;
    bool in_order;         /* sums must also have their ranks in order, 0 (+) 1 (+) 2 … */
    bool aligned;          /* sums must be bracketed as the aligned tree of mesh/aligned.h */
    const int32_t *number; /* the number of each rank in that tree; NULL: the rank itself */
} mc_verify_options_t;

/* Returns ERR_PLAN with the first fault as a sentence: rank, step and what was expected. NULL
 * options: one random order, seed 1. `window` receives the fewest messages in flight from one rank to another with
 * which this world completes in program order, at least 1 and at most MC_PROGRAM_WINDOW; NULL: nobody asks. */
int mc_verify(const mc_world_t *world, const mc_verify_options_t *options, uint32_t *window);

#endif
