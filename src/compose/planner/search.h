/* The cheapest paths through the graph of placements; for the planner. */
#ifndef MC_COMPOSE_SEARCH_H
#define MC_COMPOSE_SEARCH_H

#include "compose/planner/priced.h"
#include "compose/planner/query.h"

/* The `most` cheapest strategies, sorted (0: all). See mc_planner_rank. `graph` is of the collective and
 * links. */
int mc_search(mc_priced_t *graph, meshcoll_collective_t collective, const mc_links_t *links,
              const mc_planner_query_t *query, uint32_t most, mc_ranked_t **ranked, uint32_t *n,
              uint32_t *considered);

#endif
