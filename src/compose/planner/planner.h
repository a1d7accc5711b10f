/* Finds the cheapest strategies of a collective with a link model. */
#ifndef MC_COMPOSE_PLANNER_H
#define MC_COMPOSE_PLANNER_H

#include "compose/planner/query.h"
#include "compose/price/bound.h"
#include "compose/price/strategy_cost.h"

/*
 * The cheapest strategies, each with its best number of segments: a power of two up to max_segments, or the
 * number that the cut rule needs; the smaller one of two that cost the same. The cheapest strategy is
 * first; strategies of equal cost keep the order of enumeration. *n: at most query->most; *considered: how
 * many were priced. The caller frees *ranked by free().
 *
 * Where links have bursts and sends are paced, each strategy of the list then has the number of segments in which it
 * takes least with the burst that a shaped wire regains during the fill (mc_strategy_segments), and the list is sorted
 * again. The search does not model this. So the list has the right strategies, but one outside of it could be cheaper
 * with fewer segments; of the strategies in the list, mc_planner_best settles the first one only.
 *
 * The list includes those strategies of two sides that may be the cheapest, after strategies of one side
 * that cost the same (sides_search.h).
 *
 * With one or two dimensions longer than 1 all strategies of one side are priced, and most = 0 returns all
 * of them. With more dimensions there are too many (3D allreduce: tens of millions), and the search finds
 * the `most` cheapest (0: MC_RANK_MOST; search_several.c). It may miss one only if it reaches MC_MOST_LABELS
 * (labels.h). For its times see docs/lab-notes/planner.md.
 */
enum { MC_RANK_MOST = 256 };
int mc_planner_rank(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t **ranked,
                    uint32_t *n, uint32_t *considered);
/* Only the cheapest strategy: the first one of mc_planner_rank, found faster. */
int mc_planner_best(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t *best);

#endif
