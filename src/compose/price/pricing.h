/*
 * What phases cost with a link model. Costs are added up as exact fractions, so strategies that cost the same tie
 * exactly, on every rank and whatever the order of their phases.
 */
#ifndef MC_COMPOSE_PRICING_H
#define MC_COMPOSE_PRICING_H

#include "compose/strategy/strategy.h"

/* What one algorithm of a strategy for `collective` costs along `dims` when the dimensions are in `state`,
 * with `share` of the vector. `root` is a rank; the collectives on the mesh that have no root pass
 * through it. `walks`: NULL, or what is kept between phases of one mesh, root and links. */
mc_phase_cost_t mc_phase_cost(meshcoll_collective_t collective, int32_t algorithm, mc_dims_t dims,
                              const mc_mesh_t *mesh, const mc_links_t *links, int32_t root,
                              const mc_placement_t state[MC_MAX_DIMS], mc_ratio_t share,
                              mc_walks_t *walks);
/* The part of a collective's vector that `move` is about along `dims` where the dimensions of `cut` (a
 * bit each) are cut. With blocks and boxes of unequal sizes the largest that any rank has, and where
 * every rank passes on the others' slices, all slices are taken to be as long as the longest. */
mc_ratio_t mc_share_of(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                       meshcoll_collective_t move, mc_dims_t dims, unsigned cut);

/* Cost of phase `i`, as exact terms. */
mc_phase_cost_t mc_strategy_phase_cost(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                       const mc_links_t *links, int32_t root, int32_t i);

#endif
