/*
 * Costs of single phases with a link model. Costs are exact fractions, so strategies that cost the same
 * compare equal, on every rank and in whatever order their phases are.
 */
#ifndef MC_COMPOSE_PRICING_H
#define MC_COMPOSE_PRICING_H

#include "compose/strategy/strategy.h"

/* Cost of a phase of a strategy for `collective`: `algorithm` along `dims`, when the dimensions are in the
 * placements `state`. `root` is a mesh rank; collectives without a root pass through it. `gathers`: of an
 * alltoall that gathers. `walks`: NULL, or a cache shared by phases on one mesh, root and links. */
mc_phase_cost_t mc_phase_cost(meshcoll_collective_t collective, int32_t algorithm, mc_dims_t dims,
                              const mc_mesh_t *mesh, const mc_links_t *links, int32_t root,
                              const mc_placement_t state[MC_MAX_DIMS], bool gathers,
                              mc_walks_t *walks);
/* Cost of phase `i` of a strategy. */
mc_phase_cost_t mc_strategy_phase_cost(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                       const mc_links_t *links, int32_t root, int32_t i);

#endif
