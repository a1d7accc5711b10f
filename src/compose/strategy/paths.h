/*
 * The graph that strategies are paths of: a node says for each dimension in which placement it is
 * and has been; a hop is a 1D collective along one dimension, or along adjacent ones in the same
 * placement. Dimensions of extent 1 do not count. Its order is the order of enumeration and
 * breaks ties.
 */
#ifndef MC_COMPOSE_PATHS_H
#define MC_COMPOSE_PATHS_H

#include "compose/strategy/numbering.h"
#include "compose/strategy/strategy.h"

enum {
    MC_MAX_LINES = MC_MAX_DIMS * (MC_MAX_DIMS + 1) / 2, /* plain and merged */
    MC_MAX_HOPS = 3 * MC_MAX_LINES /* a placement is left in three ways at most */
};

/* Algorithms of the registry, a bit each. */
typedef uint64_t mc_choices_t;

static inline int32_t mc_choices_count(mc_choices_t choices)
{
    return __builtin_popcountll(choices);
}
/* Takes the first one off; there is one. */
static inline int32_t mc_choices_take(mc_choices_t *choices)
{
    const int32_t first = __builtin_ctzll(*choices);
    *choices &= *choices - 1;
    return first;
}

typedef struct {
    meshcoll_collective_t collective;
    mc_placement_t from, to;
    int32_t n, dim[MC_MAX_DIMS]; /* dimensions longer than 1, outermost first; at least one */
    bool in_order; /* only what reduces in the order of ranks: inner dimensions before outer ones */
    bool ragged;   /* the last dimension is fold; phases merge it with all others or not at all */
    bool flat;     /* of a ragged mesh: all phases merge all dimensions */
    /* only what adds up by the aligned tree over this numbering; NULL: whatever */
    const mc_numbering_t *aligned;
    mc_mesh_t mesh;
    /* by collective: the algorithms that are no composite */
    mc_choices_t choices[MESHCOLL_COLLECTIVES];
    mc_choices_t planes; /* those for lines through two dimensions only */
} mc_graph_t;

typedef struct {
    uint8_t at[MC_MAX_DIMS], been[MC_MAX_DIMS]; /* by position in graph->dim; been: a bit each */
    bool flat; /* of a ragged mesh: the path began with all dimensions merged, and so goes on */
} mc_node_t;

typedef struct {
    meshcoll_collective_t collective;
    int32_t first, count; /* positions in graph->dim */
    mc_placement_t to;    /* where they are after it */
    bool gathered;        /* of an alltoall that gathers (mc_strategy_gathers) */
    mc_dims_t dims;
    bool flat;
} mc_hop_t;

/* `aligned` stays the caller's, and stays. A ragged mesh is led by the root (mc_mesh_led_by). */
mc_graph_t mc_graph(meshcoll_collective_t collective, const mc_mesh_t *mesh, bool in_order,
                    const mc_numbering_t *aligned);
/* The algorithms for a hop. */
mc_choices_t mc_graph_choices(const mc_graph_t *graph, const mc_hop_t *hop);
mc_node_t mc_graph_start(const mc_graph_t *graph);
bool mc_graph_ended(const mc_graph_t *graph, const mc_node_t *node);
/* Hops from `node` from which the end can still be reached; how many. */
int32_t mc_graph_hops(const mc_graph_t *graph, const mc_node_t *node, mc_hop_t hop[MC_MAX_HOPS]);
mc_node_t mc_graph_after(const mc_node_t *node, const mc_hop_t *hop);

#endif
