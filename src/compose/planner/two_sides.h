/* Strategies of two sides that may be the cheapest; for the planner. */
#ifndef MC_COMPOSE_TWO_SIDES_H
#define MC_COMPOSE_TWO_SIDES_H

#include "compose/planner/priced.h"

/*
 * Adds strategies of two sides to a settled ranking, each with its best number of segments. Both sides are the same path with the dimensions in
 * different orders. This path is that of the named strategy of two sides (mc_named_two_sided), or the cheapest one
 * for half of the vector in one segment, which is what a side takes if the other never delays it, or for a quarter, which weighs messages twice.
 * There are none for a collective without such a named strategy, nor if the cheapest strategy of one side is within
 * the time of a segment of the lower bound.
 */
int mc_sides_search(const mc_priced_t *graph, const mc_planner_query_t *query,
                    mc_ranking_t *ranking);

#endif
