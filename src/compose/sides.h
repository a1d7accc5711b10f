/* Strategies of two sides: what they cost, and which of them may be worth it; for the planner. */
#ifndef MC_COMPOSE_SIDES_H
#define MC_COMPOSE_SIDES_H

#include "compose/planner.h"
#include "compose/priced.h"

/*
 * Seconds of a strategy with two sides for n bytes are fill + (segments / 2 - 1) * every, where a
 * piece is n / segments and one segment of each side goes through side by side.
 *   fill   of the first two: the sides' phases in program order (the first of both, the second of
 *          both, ...), each when the one before it on its side has ended and the links of its
 *          dimensions are free of the phases before it; these it keeps as long as it is busy
 *   every  how long two segments, one of each side, keep the busiest link: both sides' times add up
 *          for each dimension
 * Neither is less than a rank's own time for two segments: a rank starts one message at a time and
 * sums on one processor, so alphas and gammas of both sides and of all dimensions add up.
 */
typedef struct {
    double fill, every;
    int32_t busiest; /* the dimension that `every` is the time of; -1: the rank itself */
} mc_pace_t;
mc_pace_t mc_sides_pace(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                        const mc_links_t *links, int32_t root, double n);
double mc_sides_seconds(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                        const mc_links_t *links, int32_t root, double n);

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
int mc_sides_candidates(mc_priced_t *graph, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                        const mc_links_t *links, const mc_planner_query_t *query,
                        const mc_ranked_t *best, mc_ranked_t **ranked, uint32_t *n);

#endif
