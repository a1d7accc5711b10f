/*
 * The verifier: proves of one world of plans that every contribution arrives exactly once, the final
 * placement is reached, messages match, chunks stay within bounds, inputs stay unmodified, in
 * place and out of place, that it progresses with unbuffered (rendezvous) messages and a window of
 * one per peer and direction, and that any order the dependencies allow gives the same. Work for
 * nothing is an error too: a copy of what already stands there, and a value that is overwritten, or
 * left in SCRATCH, before anything reads it. (A message may bring what its receiver has: an
 * allgather after an MST scatter does, and its cost says so. A copy from one half of SCRATCH to the
 * other may find its value there: an alltoall in four phases and more.)
 */
#ifndef MC_PLAN_VERIFY_H
#define MC_PLAN_VERIFY_H

#include "plan/world.h"

typedef struct {
    uint32_t random_orders; /* random dependency-respecting runs besides the two fixed ones */
    uint64_t seed;
    bool in_order;         /* sums must also name their ranks in order, 0 (+) 1 (+) 2 … */
    bool aligned;          /* be bracketed as the aligned tree of ranks: see mesh/aligned.h */
    const int32_t *number; /* of a rank in that tree, by rank; NULL: its own */
} mc_verify_options_t;

/* ERR_PLAN with the first fault as a sentence: rank, step and what was expected. NULL options: one
 * random order, seed 1. */
int mc_verify(const mc_world_t *world, const mc_verify_options_t *options);

#endif
