/*
 * Good strategies, found at once: the tighter the limit, the shorter the search.
 */
#ifndef MC_COMPOSE_GOOD_H
#define MC_COMPOSE_GOOD_H

#include "compose/bounds.h"

/* The path that is cheapest by one mean of a block. Sets *good to it where it is cheaper, as all here do. */
void mc_good_follow(const mc_bounds_t *b, const mc_cut_t *cut, int32_t block, int32_t lane,
                    mc_good_t *good);
/* The path that takes, phase by phase, what comes to the least if the first block's strongest mean is followed from
 * there on: no dearer than that mean's own (rollout: Bertsekas, Tsitsiklis and Wu 1997). */
int mc_good_roll_out(const mc_bounds_t *b, const mc_cut_t *cut, mc_good_t *good);

#endif
