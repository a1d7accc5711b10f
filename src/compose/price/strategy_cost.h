/* Costs of whole strategies, of one side or two, with a link model; in seconds. */
#ifndef MC_COMPOSE_STRATEGY_COST_H
#define MC_COMPOSE_STRATEGY_COST_H

#include "compose/pace/limits.h"
#include "compose/price/pricing.h"

/* The number of segments, from `needed` up to the strategy's own, in which a strategy of one side takes
 * least. While the fill runs, a shaped wire is idle and regains burst, so segments that only shorten the
 * fill cost headers and gain nothing. The search does not model this, because it adds phases up one by one.
 * Returns the strategy's own number if messages of several dimensions pass one shaped wire. */
uint32_t mc_strategy_segments(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                              const mc_links_t *links, int32_t root, double n, uint32_t needed);
/* The number of segments that the strategy's phases need (compose/pace/limits.h). `links`: at n bytes (mc_links_at). */
uint32_t mc_strategy_needed(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                            const mc_links_t *links, int32_t root, double n,
                            const mc_pacing_t *pacing);
/* Seconds for n bytes: the fill of the first segment, then (segments - 1) times the busiest link. Phases
 * over one link add up, phases over different links are concurrent. For two sides see sides.h. */
double mc_strategy_seconds(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                           const mc_links_t *links, int32_t root, double n);

/* The links at n bytes with the strategy's bursts taken off beta, and 0. */
mc_links_t mc_strategy_links(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                             const mc_links_t *links, int32_t root, double n);

#endif
