/*
 * The graph of placements in arrays, with a price on every step; for the search. A state of the search is a
 * node of this graph. Prices depend on mesh, links and root, and not on the vector's size; the number of
 * segments that a step needs depends on the size too.
 */
#ifndef MC_COMPOSE_PRICED_H
#define MC_COMPOSE_PRICED_H

#include "compose/planner/search/query.h"
#include "compose/price/linear.h"
#include "compose/strategy/paths.h"

/* The price of an algorithm along certain dimensions for the whole vector, in seconds as functions of a segment's
 * bytes; a step's share is a factor on the bytes. */
typedef struct {
    mc_linear_t once; /* from a segment's start to its end */
    /* for how long a segment occupies each wire and, behind the wires, the ranks (mc_busy_t) */
    mc_linear_t busy[MC_MAX_DIMS + 1];
    double message; /* mean message between boxes, in one segment (mc_pacing_mean) */
} mc_price_t;

/* The exact cost of a step along one dimension with messages (mc_phase_cost_t). */
typedef struct {
    int32_t dim;
    mc_term_t once, busy;
} mc_priced_term_t;

/* The arguments that a price was computed for, so that its exact cost can be computed later. */
typedef struct {
    int32_t algorithm;
    mc_dims_t dims;
    uint8_t state[MC_MAX_DIMS];
} mc_priced_args_t;

/* A phase of a strategy, on `share` of the vector. */
typedef struct {
    int32_t price; /* index */
    mc_phase_t phase;
    mc_ratio_t share;
    uint32_t least_segments; /* that the cut rule needs (compose/pace/limits.h) */
} mc_priced_step_t;

/* Steps [first, first + n), which differ in the algorithm only, in the order of enumeration. Hops that have
 * the same steps share a group. */
typedef struct {
    int32_t first, n;
} mc_priced_group_t;

/* A hop to node `next` by any step of `group`. */
typedef struct {
    int32_t next, group;
} mc_priced_hop_t;

/* Node i has hops [first_hop[i], first_hop[i + 1]), in the order of enumeration. They lead to nodes with
 * lower indices. The start is the last node; nodes without hops are ends. */
typedef struct {
    mc_graph_t graph;
    int32_t n_wires;
    int32_t wire[MC_MAX_DIMS];    /* by wire: its dimension (mc_links_wire) */
    int32_t wire_of[MC_MAX_DIMS]; /* by position in graph.dim: index of its wire */
    bool ranks_apart; /* does the ranks' own time differ from that of links? (mc_busy_t) */
    int32_t n_prices, n_steps, n_groups, n_hops, n_nodes;
    mc_price_t *price;
    mc_priced_args_t *args; /* by price */
    mc_priced_step_t *step;
    mc_priced_group_t *group;
    mc_priced_hop_t *hop;
    int32_t *first_hop;
    /* exact costs, computed on demand, for few of the steps */
    mc_priced_group_t *exact_of; /* by step: the range of its terms; n is -1 if not computed */
    mc_priced_term_t *exact;
    int32_t n_exact, room_exact;
    const mc_mesh_t *mesh;
    const mc_links_t *links;
    int32_t root;
    mc_walks_t *walks;
    const mc_pacing_t *pacing; /* pacing, for the cut rule; NULL: without it */
    double bytes;              /* of the vector, for the cut rule */
} mc_priced_t;

/* Builds the graph. The caller owns `mesh`, `links` and what the query points to; they must outlive `p`. */
int mc_priced_init(mc_priced_t *p, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                   const mc_links_t *links, const mc_planner_query_t *query);
void mc_priced_free(mc_priced_t *p);

/* The terms of a step's exact cost. Returns their number, or -1 if memory runs out. *term is valid until the
 * next call. */
int32_t mc_priced_exact(mc_priced_t *p, int32_t step, const mc_priced_term_t **term);

#endif
