/* Which strategies of two sides may be worth it; for the planner. */
#ifndef MC_COMPOSE_SIDES_SEARCH_H
#define MC_COMPOSE_SIDES_SEARCH_H

#include "compose/planner/priced.h"
#include "compose/planner/query.h"

/*
 * Strategies of two sides that may be the best, each with its best number of segments, in a fixed
 * order. Both sides of one are the same path with the dimensions in other orders: that of the named
 * strategy "torus", and the cheapest path for half of the vector in one segment (what a side takes
 * where the other is never in its way); for a quarter too, where messages weigh more than bytes.
 * `best` is the cheapest strategy of one side: none are given that cannot be cheaper for what a link
 * must carry (where query->most is 1, none that cannot be for any reason), and none at all where less
 * than the time of a segment is between it and the lower bound, nor for a collective without a torus.
 * The caller frees *ranked by free(); NULL where there are none. `graph` is the one that `best` was
 * found in, and is searched again.
 */
int mc_sides_search(mc_priced_t *graph, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query,
                    const mc_ranked_t *best, mc_ranked_t **ranked, uint32_t *n);

#endif
