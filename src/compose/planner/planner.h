/* Finds the cheapest strategies of a collective with a link model. */
#ifndef MC_COMPOSE_PLANNER_H
#define MC_COMPOSE_PLANNER_H

#include "compose/planner/search/query.h"
#include "compose/price/bound.h"
#include "compose/price/strategy_cost.h"

/*
 * The cheapest strategies, each with its best number of segments: a power of two up to max_segments, or the
 * number that the cut rule needs; the smaller one of two that cost the same. The cheapest strategy is
 * first; strategies of equal cost keep the order of enumeration. *n: at most query->most; *considered: how
 * many were priced. The caller frees *ranked by free().
 *
 * If the links have a table of measured strategies of this collective (mesh/link/link.h) and the query allows
 * any of them, the list is those.
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
