/*
 * A described network between the ends of a mesh: the ports of its boxes that lead outside (docs/simulate.md). As text:
 *   tree=DOWN:UP:RATE/DOWN:UP:RATE   an extended generalised fat tree (Oehring et al. 1995), leaves first: a switch has
 *                                    DOWN links down and UP links up, each of RATE. The last level may be DOWN alone: it
 *                                    is the top. Otherwise one more level joins all; DOWN / UP is the oversubscription.
 *                                    ";rails": end k of each box is at leaf k of its group of DOWN boxes
 *   torus=16x16x40:RATE              a node for each end, or for so many consecutive ones
 *   graph=FILE:RATE                  a line of the file is "A B" or "A B RATE", a link both ways; ends are 0, 1, 2, …,
 *                                    other names are switches, and # begins a comment
 * Routes are shortest ones: by the destination's number (D mod k; a torus in the order of its dimensions), or with ";ecmp"
 * or ";ecmp:SEED" by a hash of both ends. Links are numbered; each has one direction.
 */
#ifndef MC_NETWORK_NETWORK_H
#define MC_NETWORK_NETWORK_H

#include "base/base.h"

enum {
    MC_NETWORK_LEVELS = 6,      /* of a tree, or dimensions of a torus */
    MC_NETWORK_MOST = 1 << 20,  /* DOWN, UP, an extent, nodes of a graph, its links */
    MC_NETWORK_LINKS = 1 << 26, /* of a tree or a torus */
    MC_NETWORK_TEXT = 4096,
    MC_NETWORK_NAME = 96 /* room for the name of a link; a longer one is cut */
};

typedef enum { MC_NETWORK_TREE, MC_NETWORK_TORUS, MC_NETWORK_GRAPH } mc_network_kind_t;

/* A graph read from a file. */
typedef struct mc_graph mc_graph_t;

typedef struct {
    mc_network_kind_t kind;
    bool rails, ecmp;
    uint64_t seed;
    int32_t n_levels;
    struct {
        int32_t down, up; /* an extent of a torus is `down`; up 0: the top of a tree */
        double beta;      /* seconds per byte of a link */
    } level[MC_NETWORK_LEVELS];
    double beta; /* of a torus, or of a graph's links that have no rate of their own */
    mc_graph_t *graph;
    /* as mc_network_fit sets them */
    int32_t ends, per_box, per_node;
    uint32_t n_links;
    uint32_t first[MC_NETWORK_LEVELS]; /* of a tree: the first link of each level */
} mc_network_t;

/* Links, appended by mc_network_route; zeros are an empty one. The caller frees `link`. */
typedef struct {
    uint32_t *link, n, capacity;
} mc_network_route_t;

/* ERR_PARSE, ERR_INVALID_ARG or ERR_IO with a sentence. mc_network_free frees what it has set. */
int mc_network_parse(const char *text, mc_network_t *network);
void mc_network_free(mc_network_t *network);
/* Text from which mc_network_parse reads the same network. */
void mc_network_print(const mc_network_t *network, mc_text_t *text);

/* Prepares it for ends 0 … ends - 1, of which `per_box` consecutive ones belong to a box. ERR_INVALID_ARG where they have
 * no place. */
int mc_network_fit(mc_network_t *network, int32_t ends, int32_t per_box);
/* Appends the links from one end to another, of a fitted network. Fastest where `from` seldom changes. */
int mc_network_route(mc_network_t *network, int32_t from, int32_t to, mc_network_route_t *route);
/* How many links a message takes besides those of its route: between an end and its leaf. */
static inline uint32_t mc_network_plugs(const mc_network_t *network)
{
    return network->kind == MC_NETWORK_TREE ? 2 : 0;
}
/* The part of the network that a link is in: the level of a tree, the dimension of a torus, 0 of a graph. */
int32_t mc_network_part(const mc_network_t *network, uint32_t link);
/* Seconds per byte of a link. */
double mc_network_beta(const mc_network_t *network, uint32_t link);
/* "leaf85.0 up22": the 22nd link up of switch 0 of the 85th leaf. "node3.4.5 +x"; "a>b". */
void mc_network_name(const mc_network_t *network, uint32_t link, mc_text_t *text);

#endif
