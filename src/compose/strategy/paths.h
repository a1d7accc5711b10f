/*
 * The graph of placements; strategies are its paths. A node says for each dimension in which placement it
 * is and has been. A hop is a 1D collective along one dimension, or along adjacent dimensions in the same
 * placement. Dimensions of extent 1 are left out. The order of hops and algorithms is the order of
 * enumeration, which breaks ties between strategies of equal cost.
 */
#ifndef MC_COMPOSE_PATHS_H
#define MC_COMPOSE_PATHS_H

#include "compose/strategy/numbering.h"
#include "compose/strategy/strategy.h"

enum {
    MC_MAX_LINES = MC_MAX_DIMS * (MC_MAX_DIMS + 1) / 2, /* plain and merged */
    /* at most three moves leave a placement */
    MC_MAX_HOPS = 3 * MC_MAX_LINES
};

/* Algorithms of the registry, a bit each. */
typedef uint64_t mc_choices_t;

static inline int32_t mc_choices_count(mc_choices_t choices)
{
    return __builtin_popcountll(choices);
}
/* Removes and returns the first one; `*choices` is not empty. */
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
    bool in_order; /* only reductions in the order of ranks: inner dimensions before outer ones */
    bool turns;    /* with the algorithms that are `turned` */
    bool ragged;   /* the last dimension is fold; a phase merges it with all others or with none */
    bool flat;     /* of a ragged mesh: only phases that merge all dimensions */
    /* only sums by the aligned tree over this numbering; NULL: any */
    const mc_numbering_t *aligned;
    mc_mesh_t mesh;
    /* by collective: the algorithms that may be enumerated */
    mc_choices_t choices[MESHCOLL_COLLECTIVES];
    mc_choices_t planes; /* algorithms for two merged dimensions only */
} mc_path_graph_t;

typedef struct {
    /* by position in graph->dim: the placement, and those so far including it, a bit each */
    uint8_t at[MC_MAX_DIMS], been[MC_MAX_DIMS];
    bool flat; /* of a ragged mesh: the path began with all dimensions merged and must go on so */
} mc_node_t;

typedef struct {
    meshcoll_collective_t collective;
    int32_t first, count; /* positions in graph->dim */
    mc_placement_t to;    /* their placement after it */
    bool gathered;        /* part of an alltoall that gathers (mc_strategy_gathers) */
    mc_dims_t dims;
    bool flat;
} mc_hop_t;

/* The caller owns `aligned`, which must outlive the graph. A ragged `mesh` is led by the root
 * (mc_mesh_led_by). */
mc_path_graph_t mc_graph(meshcoll_collective_t collective, const mc_mesh_t *mesh, bool in_order,
                         bool turns, const mc_numbering_t *aligned);
/* The algorithms that may run a hop. */
mc_choices_t mc_graph_choices(const mc_path_graph_t *graph, const mc_hop_t *hop);
mc_node_t mc_graph_start(const mc_path_graph_t *graph);
bool mc_graph_ended(const mc_path_graph_t *graph, const mc_node_t *node);
/* The hops from `node` after which the end can still be reached. Returns their number. */
int32_t mc_graph_hops(const mc_path_graph_t *graph, const mc_node_t *node,
                      mc_hop_t hop[MC_MAX_HOPS]);
mc_node_t mc_graph_after(const mc_node_t *node, const mc_hop_t *hop);

#endif
