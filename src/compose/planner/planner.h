/* Prices strategies with a link model and ranks them. */
#ifndef MC_COMPOSE_PLANNER_H
#define MC_COMPOSE_PLANNER_H

#include "compose/planner/query.h"
#include "compose/price/bound.h"
#include "compose/price/strategy_cost.h"

/*
 * Strategies with the best number of segments of each (powers of two up to max_segments, 32768 at
 * most; the smaller one when equal), cheapest first; ties keep the enumeration's order. At most
 * `most` are returned; `considered` says how many were priced. The caller frees *ranked by free().
 *
 * Among them are strategies of two sides that may be the best, behind those of one side that cost
 * the same; see sides.h. All that follows is said of those of one side.
 *
 * With one or two dimensions longer than 1 all strategies are priced, and most = 0 returns all of
 * them. With more they are too many (3D allreduce: tens of millions), and the search finds the `most` cheapest
 * of all (0: MC_RANK_MOST), in tens of milliseconds: see search.c. The cheapest alone takes a millisecond, in four
 * dimensions tens of them: docs/bench.md. Only where MC_MOST_LABELS (labels.h) cuts it short may it miss one.
 */
enum { MC_RANK_MOST = 256 };
int mc_planner_rank(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t **ranked,
                    uint32_t *n, uint32_t *considered);
/* The cheapest alone, the same as rank()[0]. */
int mc_planner_best(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t *best);

#endif
