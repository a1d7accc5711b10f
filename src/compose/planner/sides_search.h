/* Searches for strategies of two sides that may be the cheapest; for the planner. */
#ifndef MC_COMPOSE_SIDES_SEARCH_H
#define MC_COMPOSE_SIDES_SEARCH_H

#include "compose/planner/search/priced.h"
#include "compose/planner/search/query.h"

/*
 * Strategies of two sides that may be the cheapest, each with its best number of segments, in a fixed order.
 * Both sides are the same path with the dimensions in different orders. This path is that of the named
 * strategy of two sides (mc_named_two_sided), or the cheapest one for half of the vector in one segment, which is what a side takes
 * if the other never delays it; if the ranks' own time limits these, also the cheapest one for a quarter,
 * which weighs messages twice.
 * `best` is the cheapest strategy of one side. Pairs that keep some link busy for longer are left out; if
 * query->most is 1, so are all pairs that take longer. There are none at all for a collective without
 * such a named strategy, nor if `best` is within the time of a segment of the lower bound. The caller frees *ranked by
 * free(); it is NULL if *n is 0. `graph` is the one that `best` was found in; it is searched again.
 */
int mc_sides_search(mc_priced_t *graph, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query,
                    const mc_ranked_t *best, mc_ranked_t **ranked, uint32_t *n);

#endif
