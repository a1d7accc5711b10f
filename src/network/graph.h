/* Graphs read from files; internal to src/network. */
#ifndef MC_NETWORK_GRAPH_H
#define MC_NETWORK_GRAPH_H

#include "network/network.h"

typedef struct {
    uint32_t node[2];
    double beta; /* 0: that of the network */
} mc_edge_t;

/* Node i is called name[i]; ends come first. Of edge e link 2e leads from node[0] to node[1], 2e + 1 back. */
struct mc_graph {
    char *path;
    uint32_t n_nodes, n_ends, n_edges, node_capacity, edge_capacity;
    char **name;
    mc_edge_t *edge;
    /* by node: the links that lead away from it, way[off[i]…off[i + 1]), and the nodes where they lead */
    uint32_t *off, *way, *next;
    uint32_t *queue, n_queued,
        n_left; /* nodes by distance: so many are measured, and so many of them left behind */
    int32_t *far,
        from; /* links from node `from` to each node; -1: not reached. from < 0: not computed */
};

int mc_graph_read(const char *path, mc_graph_t **graph);
/* Reads the bytes of a file; `path` is for messages. */
int mc_graph_parse(const char *path, const char *text, size_t bytes, mc_graph_t **graph);
void mc_graph_free(mc_graph_t *graph); /* NULL is allowed */

static inline uint32_t mc_graph_head(const mc_graph_t *g, uint32_t link)
{
    return g->edge[link / 2].node[~link & 1];
}
static inline uint32_t mc_graph_tail(const mc_graph_t *g, uint32_t link)
{
    return g->edge[link / 2].node[link & 1];
}
/* Sets `far` of node `to`, and of all that are nearer to `from`: breadth first, on from where the last call came to. */
void mc_graph_measure(mc_graph_t *g, int32_t from, uint32_t to);

#endif
