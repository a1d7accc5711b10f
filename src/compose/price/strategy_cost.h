/* What whole strategies cost with a link model, of one side or two. */
#ifndef MC_COMPOSE_STRATEGY_COST_H
#define MC_COMPOSE_STRATEGY_COST_H

#include "compose/price/pieces.h"
#include "compose/price/pricing.h"

/* The number of segments in which a strategy of one side takes least, from `needed` up to its own: shaped wires save up what they
 * let pass after a fill, so that segments that only hide it are headers for nothing. The search adds phases up, and
 * does not know. Its own where messages of several dimensions pass one such wire. */
uint32_t mc_strategy_segments(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                              const mc_links_t *links, int32_t root, double n, uint32_t needed);
/* Segments that its phases need (pieces.h). `links` as n bytes find them. */
uint32_t mc_strategy_needed(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                            const mc_links_t *links, int32_t root, double n,
                            const mc_stream_t *stream);
/* Seconds for n bytes: the fill of the first segment, then (segments - 1) times the busiest link,
 * phases over one link added up, phases over different links side by side. With two sides, see
 * sides.h. */
double mc_strategy_seconds(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                           const mc_links_t *links, int32_t root, double n);

/* The links as this strategy finds them with n bytes: bursts are taken off beta, and 0. */
mc_links_t mc_strategy_links(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                             const mc_links_t *links, int32_t root, double n);

#endif
