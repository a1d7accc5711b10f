/*
 * Prices strategies with a link model and ranks them. Costs are added up as exact fractions, so
 * strategies that cost the same tie exactly, on every rank and whatever the order of their phases.
 */
#ifndef MC_COMPOSE_PLANNER_H
#define MC_COMPOSE_PLANNER_H

#include "compose/numbering.h"
#include "compose/strategy.h"

/* Cost of phase `i`, as exact terms. */
mc_phase_cost_t mc_strategy_phase_cost(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                       const mc_links_t *links, int32_t root, int32_t i);
/* The number of segments in which a strategy of one side takes least, up to its own: shaped wires save up what they
 * let pass after a fill, so that segments that only hide it are headers for nothing. The search adds phases up, and
 * does not know. Its own where messages of several dimensions pass one such wire. */
uint32_t mc_strategy_segments(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                              const mc_links_t *links, int32_t root, double n);
/* Seconds for n bytes: the fill of the first segment, then (segments - 1) times the busiest link,
 * phases over one link added up, phases over different links side by side. With two sides, see
 * sides.h. */
double mc_strategy_seconds(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                           const mc_links_t *links, int32_t root, double n);

/* The links as this strategy finds them with n bytes: bursts are taken off beta, and 0. */
mc_links_t mc_strategy_links(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                             const mc_links_t *links, int32_t root, double n);

typedef struct {
    mc_strategy_t strategy;
    double seconds;
} mc_ranked_t;

/* What one algorithm of a strategy for `collective` costs along `dims` when the dimensions are in `state`,
 * with `share` of the vector. `root` is a rank; the collectives on the mesh that have no root pass
 * through it. `walks`: NULL, or what is kept between phases of one mesh, root and links. */
mc_phase_cost_t mc_phase_cost(meshcoll_collective_t collective, int32_t algorithm, mc_dims_t dims,
                              const mc_mesh_t *mesh, const mc_links_t *links, int32_t root,
                              const mc_placement_t state[MC_MAX_DIMS], mc_ratio_t share,
                              mc_walks_t *walks);
/* The part of a collective's vector that `move` is about along `dims` where the dimensions of `cut` (a
 * bit each) are cut. With blocks and boxes of unequal sizes the largest that any rank has, and where
 * every rank passes on the others' slices, all slices are taken to be as long as the longest. */
mc_ratio_t mc_share_of(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                       meshcoll_collective_t move, mc_dims_t dims, unsigned cut);

/* Powers of two up to this are tried as numbers of segments. */
enum { MC_MOST_SEGMENTS = 32768 };

/*
 * Strategies with the best number of segments of each (powers of two up to max_segments, 32768 at
 * most; the smaller one when equal), cheapest first; ties keep the enumeration's order. At most
 * `most` are returned; `considered` says how many were priced. The caller frees *ranked by free().
 *
 * Among them are strategies of two sides that may be the best, behind those of one side that cost
 * the same; see sides.h. All that follows is said of those of one side.
 *
 * With one or two dimensions longer than 1 all strategies are priced, and most = 0 returns all of
 * them. With more they are too many (3D allreduce: tens of millions). Branch and bound then finds
 * the `most` cheapest of all (0: MC_RANK_MOST), exactly: see search.c. In three dimensions it takes
 * milliseconds; from four on, where links are much alike, it may take seconds. The cheapest alone
 * takes less than a millisecond, and tens of them: docs/bench.md.
 */
enum { MC_RANK_MOST = 256 };
typedef struct {
    int32_t root;
    double bytes; /* of the whole vector */
    uint32_t max_segments;
    uint32_t most;
    bool in_order;                 /* only strategies that reduce in the order of ranks */
    const mc_numbering_t *aligned; /* only those that add up by the aligned tree; NULL: any */
    bool one_side;                 /* leaves those of two sides out */
} mc_planner_query_t;
int mc_planner_rank(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t **ranked,
                    uint32_t *n, uint32_t *considered);
/* The cheapest alone, the same as rank()[0]; within 1 % of it where the search is long (search.c). */
int mc_planner_best(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t *best);

/*
 * Lower bound of REFERENCE §5 in seconds for n bytes of the whole vector (alltoall: of what one
 * rank sends): the largest of
 *   bandwidth    of the outermost dimension longer than 1: on one line the line's, between boxes
 *                the NIC's, beta / min(ports, ranks of a box); those that share its wire have the same
 *                NICs, and the least beta counts
 *   inflow       what some rank must receive (of a broadcast all n), over all its links at once
 *   latency      ceil(log2 p) messages of the smallest alpha on wires; and between B boxes of G
 *                ranks ceil(log(B) / log(1 + G)) of the network's, as G ranks can send at once (1
 *                where receivers pull). The sum of ceil(log2 extent) alpha over dimensions is no
 *                bound: a merged MST on 5 x 3 takes 4 rounds, not 3 + 2
 *   computation  (p-1)/p n gamma of the fastest dimension, where it reduces
 */
double mc_lower_bound(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                      const mc_links_t *links, double n);

#endif
