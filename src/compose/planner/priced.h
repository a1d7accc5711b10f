/*
 * The graph of placements in arrays, with a price on every hop; for the search. It depends on mesh,
 * links and root; on the bytes only in what streams.
 */
#ifndef MC_COMPOSE_PRICED_H
#define MC_COMPOSE_PRICED_H

#include "compose/planner/query.h"
#include "compose/strategy/paths.h"

/* Bytes over a wire through which bursts pass, for a vector of one: seconds of a segment at full rate, once and
 * as it keeps the wire busy; what a port carries of it; and what of busy is the ranks' own time too. The same of its
 * messages' headers, whatever the vector. */
typedef struct {
    double once, busy, carried, own, once_fixed, busy_fixed, own_fixed;
} mc_shaped_t;

/* An algorithm along certain dimensions with the whole vector; a share is a factor on the bytes. */
typedef struct {
    double fixed, per_byte; /* seconds of a segment */
    double message;         /* of those between boxes the mean, in one segment (pieces.h) */
    /* seconds that it keeps something busy: by wire, behind them the ranks themselves (mc_busy_t) */
    double busy_fixed[MC_MAX_DIMS + 1], busy_per_byte[MC_MAX_DIMS + 1];
    mc_shaped_t shaped[MC_MAX_DIMS]; /* by wire: apart from all of the above */
} mc_price_t;

/* What an exact price comes from, of one dimension with messages (mc_phase_cost_t). */
typedef struct {
    int32_t dim;
    mc_term_t once, busy;
} mc_priced_term_t;

/* What a price was asked for. */
typedef struct {
    int32_t algorithm;
    mc_dims_t dims;
    uint8_t state[MC_MAX_DIMS];
} mc_priced_ask_t;

/* One phase with that share of the vector. */
typedef struct {
    int32_t price;
    mc_phase_t phase;
    mc_ratio_t share;
    uint32_t least_segments; /* so that no message is larger than may be */
} mc_priced_step_t;

/* Steps that lead from the same to the same: one algorithm each, in the order of enumeration. */
typedef struct {
    int32_t first, n;
} mc_priced_group_t;

typedef struct {
    int32_t next, group;
} mc_priced_hop_t;

/* Hops of node i: [first_hop[i], first_hop[i + 1]), in the order of enumeration, to nodes of lower
 * numbers. The start is the last node; nodes without hops are ends. */
typedef struct {
    mc_graph_t graph;
    int32_t n_wires;
    int32_t wire[MC_MAX_DIMS];    /* the dimension whose link it is */
    int32_t wire_of[MC_MAX_DIMS]; /* by position in graph.dim */
    bool shaped[MC_MAX_DIMS];     /* by wire: do bursts pass? */
    bool ranks_apart; /* is what the ranks are busy not their links' time? (mc_busy_t) */
    int32_t n_prices, n_steps, n_groups, n_hops, n_nodes;
    mc_price_t *price;
    mc_priced_ask_t *ask; /* by price */
    mc_priced_step_t *step;
    mc_priced_group_t *group;
    mc_priced_hop_t *hop;
    int32_t *first_hop;
    /* of few steps, those whose exact price was asked for: */
    mc_priced_group_t *exact_of; /* by step: its terms; n is -1 where they are not known */
    mc_priced_term_t *exact;
    int32_t n_exact, room_exact;
    const mc_mesh_t *mesh;
    const mc_links_t *links;
    int32_t root;
    mc_walks_t *walks;
    const mc_stream_t *stream; /* NULL: as priced */
    double bytes;              /* of the vector, for what streams */
} mc_priced_t;

/* `mesh`, `links` and the query stay the caller's, and stay. */
int mc_priced_init(mc_priced_t *p, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                   const mc_links_t *links, const mc_planner_query_t *query);
void mc_priced_free(mc_priced_t *p);

/* The terms of a step's exact cost: how many, and *term; or -1, where there is no memory for them. They stay where they are
 * until another's are asked for. */
int32_t mc_priced_exact(mc_priced_t *p, int32_t step, const mc_priced_term_t **term);

#endif
