/* Graphs read from files; internal to src/network. */
#ifndef MC_NETWORK_GRAPH_H
#define MC_NETWORK_GRAPH_H

#include "network/network.h"

/* Node i is called name[i]; ends come first. Edge e joins a[e] and b[e]: link 2e leads from a to b, 2e + 1 back. */
struct mc_graph {
    char *path;
    uint32_t n_nodes, n_ends, n_edges, capacity, node_capacity, edge_capacity;
    char **name;
    uint32_t *a, *b;
    double *beta;        /* 0: that of the network */
    uint32_t *off, *way; /* by node: the links that lead away from it, way[off[i]…off[i + 1]) */
    uint32_t *queue;
    int32_t *far,
        from; /* links from node `from` to each node; -1: not reached. from < 0: not computed */
};

int mc_graph_read(const char *path, mc_graph_t **graph);
/* From the bytes of a file; `path` is for messages. */
int mc_graph_parse(const char *path, const char *text, size_t bytes, mc_graph_t **graph);
void mc_graph_free(mc_graph_t *graph); /* NULL is allowed */

static inline uint32_t mc_graph_head(const mc_graph_t *g, uint32_t link)
{
    return link & 1 ? g->a[link / 2] : g->b[link / 2];
}
static inline uint32_t mc_graph_tail(const mc_graph_t *g, uint32_t link)
{
    return link & 1 ? g->b[link / 2] : g->a[link / 2];
}
/* Sets `far` for that node: breadth first. */
void mc_graph_measure(mc_graph_t *g, int32_t from);

#endif
