/* Costs of whole strategies, of one side or two, with a link model; in seconds. */
#ifndef MC_COMPOSE_STRATEGY_COST_H
#define MC_COMPOSE_STRATEGY_COST_H

#include "compose/pace/limits.h"
#include "compose/price/pricing.h"

/* Cost of a segment through all phases of one side. */
mc_phase_cost_t mc_strategy_side_cost(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                      const mc_links_t *links, int32_t root, int32_t side);
/* The number of segments that the strategy's phases need (compose/pace/limits.h). */
uint32_t mc_strategy_needed(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                            const mc_links_t *links, int32_t root, double n,
                            const mc_pacing_t *pacing);
/* Is the strategy in the links' table? */
bool mc_strategy_is_measured(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                             const mc_links_t *links);
/* Seconds for n bytes: measured where the links' table has the strategy, else modelled. */
double mc_strategy_seconds(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                           const mc_links_t *links, int32_t root, double n);
/* `seconds` and what the links add to each call. */
double mc_strategy_with_call(double seconds, const mc_links_t *links);
/* Seconds by the cost model: the fill of the first segment, then (segments - 1) times the busiest link, then
 * what a call takes whatever it does (mc_links_call). Phases over one link add up, phases over different links
 * are concurrent. For two sides see sides.h. */
double mc_strategy_modelled(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                            const mc_links_t *links, int32_t root, double n);

#endif
