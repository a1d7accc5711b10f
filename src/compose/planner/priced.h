/*
 * The graph of placements in arrays, with a price on every step; for the search. A state of the search is a
 * node of this graph. Prices depend on mesh, links and root, and not on the vector's size; the number of
 * segments that a step needs depends on the size too.
 */
#ifndef MC_COMPOSE_PRICED_H
#define MC_COMPOSE_PRICED_H

#include "compose/planner/planner.h"
#include "compose/price/linear.h"
#include "compose/strategy/paths.h"

/* A phase, its cost, and its seconds as functions of the bytes of the whole vector's segment. */
typedef struct {
    mc_phase_t phase;
    mc_phase_cost_t cost;
    mc_linear_t once; /* from a segment's start to its end */
    /* for how long a segment occupies each wire, each part of a network if there is one and, behind them, the ranks
     * (mc_busy_t) */
    mc_linear_t busy[MC_BUSY_WIRES + 1];
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
    mc_path_graph_t graph;
    const mc_mesh_t *mesh;
    const mc_links_t *links;
    uint32_t n_steps, n_groups, n_hops, n_nodes;
    mc_priced_step_t *step;
    mc_priced_group_t *group;
    mc_priced_hop_t *hop;
    uint32_t *first_hop;
} mc_priced_t;

/* Wires, and parts of the network, that a step may occupy. */
static inline int32_t mc_priced_wires(const mc_links_t *links)
{
    return links->ndims + (links->network ? MC_NETWORK_PARTS : 0);
}

/* Builds the graph. The caller owns `mesh`, `links` and what the query points to; they must outlive `p`. */
int mc_priced_init(mc_priced_t *p, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                   const mc_links_t *links, const mc_planner_query_t *query);
void mc_priced_free(mc_priced_t *p);

#endif
