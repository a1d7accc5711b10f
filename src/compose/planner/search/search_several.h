/* The search for several strategies. */
#ifndef MC_COMPOSE_SEARCH_SEVERAL_H
#define MC_COMPOSE_SEARCH_SEVERAL_H

#include "compose/planner/search/search_best.h"

/* Finds the `most` cheapest strategies (0: all), each with its best number of segments. */
int mc_search_several(mc_candidates_t *candidates, const mc_planner_query_t *query, uint32_t most);

#endif
