/* The parts of the verifier, in the order in which they may rely on each other. */
#ifndef MC_PLAN_CHECK_H
#define MC_PLAN_CHECK_H

#include "plan/match.h"
#include "plan/verify.h"

/* What a step says, without looking at others: ops, buffers, ranges, peers. */
int mc_check_steps(const mc_plan_t *plan);
/* Dependencies lead forward, are counted right, and order every two steps of which one writes what
 * the other touches; nothing is overwritten unread. */
int mc_check_dependencies(const mc_world_t *world);
/* Runs the world: progress, both placements, random orders, what stands at the end. */
int mc_check_runs(const mc_world_t *world, const mc_match_t *match,
                  const mc_verify_options_t *options);

#endif
