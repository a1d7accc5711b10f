/* Finds the cheapest strategies of a collective with a link model. */
#ifndef MC_COMPOSE_PLANNER_H
#define MC_COMPOSE_PLANNER_H

#include "compose/pace/limits.h"
#include "compose/price/bound.h"
#include "compose/price/strategy_cost.h"
#include "compose/strategy/numbering.h"
#include "compose/strategy/strategy.h"

enum {
    MC_MOST_SEGMENTS =
        32768,         /* the planner tries powers of two up to this as numbers of segments */
    MC_RANK_MOST = 256 /* strategies that a search for all returns where it is a beam */
};

typedef struct {
    int32_t root;
    double bytes;          /* of the whole vector (alltoall: of what one rank sends) */
    uint32_t max_segments; /* more only if the cut rule needs them (compose/pace/limits.h) */
    uint32_t most;         /* strategies to return; 0: all, or MC_RANK_MOST */
    bool in_order;         /* only strategies that reduce in the order of ranks */
    const mc_numbering_t *aligned; /* only strategies that sum by the aligned tree; NULL: any */
    const mc_pacing_t *pacing;     /* pacing, for the cut rule; NULL: without the cut rule */
} mc_planner_query_t;

typedef struct {
    mc_strategy_t strategy;
    double seconds;
} mc_ranked_t;

/* Strategies, the cheapest first. Of equal cost those of one side are first, then those that are enumerated first. */
typedef struct {
    mc_ranked_t *list;
    uint32_t n, capacity;
    uint32_t considered; /* strategies that were priced */
    bool
        exhaustive; /* no strategy of one side that is not in the list is cheaper than the last one in it */
} mc_ranking_t;

/*
 * The cheapest strategies, each with its best number of segments: a power of two up to max_segments, or the
 * number that the cut rule needs; the smaller one of two that cost the same. The caller frees ranking->list by free().
 *
 * If the links have a table of measured strategies of this collective (mesh/link/link.h) and the query allows
 * any of them, the list is those.
 *
 * With one or two dimensions longer than 1 the search is exact, and `most` = 0 returns all strategies of one side. With
 * more there are too many (3D allreduce: tens of millions): the search is a beam (search.h), exhaustive only where the
 * beam left nothing out. Of two sides the list has strategies that may be the cheapest (two_sides.h).
 */
int mc_planner_rank(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query,
                    mc_ranking_t *ranking);
/* Finds the cheapest strategy alone, the first one of mc_planner_rank, and faster. */
int mc_planner_best(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t *best);

#endif
