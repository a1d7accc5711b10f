/* The parts of the verifier, in the order in which they rely on each other. */
#ifndef MC_PLAN_CHECK_H
#define MC_PLAN_CHECK_H

#include "plan/verify/match.h"
#include "plan/verify/verify.h"

/* Checks that dependencies lead forward, are counted right, and order any two steps of which one
 * writes what the other accesses; and that nothing is overwritten unread. */
int mc_check_dependencies(const mc_world_t *world);
/* Runs the world: checks progress, both placements (in place and out of place), random orders, and
 * the final values. */
int mc_check_runs(const mc_world_t *world, const mc_match_t *match,
                  const mc_verify_options_t *options);
/* Runs each rank's steps in program order, with at most `window` messages, from 1, in flight from
 * any rank to any other. `least` receives the fewest with which all ranks reach the end, 1 also
 * where there is no message. ERR_PLAN names ranks that wait for each other, and the fewest messages
 * with which they would not. */
int mc_check_program(const mc_world_t *world, const mc_match_t *match, uint32_t window,
                     uint32_t *least);

#endif
