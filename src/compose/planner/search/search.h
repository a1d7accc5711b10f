/* Searches the graph of placements for the cheapest paths, which are strategies of one side; for the
 * planner. */
#ifndef MC_COMPOSE_SEARCH_H
#define MC_COMPOSE_SEARCH_H

#include "compose/planner/search/priced.h"
#include "compose/planner/search/query.h"

/* The `most` cheapest strategies of one side (0: all), sorted: one by search_best.c, several by search_several.c.
 * *ranked, *n and *considered as in mc_planner_rank. `graph` was built for this collective and for `links`,
 * which have no bursts (mc_links_at); exact costs are added to it. */
int mc_search(mc_priced_t *graph, const mc_links_t *links, const mc_planner_query_t *query,
              uint32_t most, mc_ranked_t **ranked, uint32_t *n, uint32_t *considered);

#endif
