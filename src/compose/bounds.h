/*
 * What paths through the graph of placements cost at least; for the search.
 *
 * A path has a load for a number of segments: sums over its phases of what its price depends on. The price
 * is no less than any of several means of the load, which are sums over phases too: so the cheapest way to
 * the end is known for every node, mean by mean. And it only grows with each part of the load: the least that
 * each part can still grow by, each on a path of its own, is a bound as well.
 */
#ifndef MC_COMPOSE_BOUNDS_H
#define MC_COMPOSE_BOUNDS_H

#include "compose/priced.h"

/* Sums of seconds are compared after rounding of this much; the prices of ends are exact. */
static const double MC_SLACK = 1e-9;

/* Means are worked out so many at a time. */
enum { MC_LANES = 4 };
/* fill; what wires and ranks are busy; of shaped wires what their bytes take once, busy and all together, and
 * by how much more than others a phase may gain by a burst, once and busy. */
enum { MC_SHAPED_PARTS = 3, MC_MOST_PARTS = 2 + 6 * MC_MAX_DIMS };

typedef struct {
    int32_t n_wires, n_busy; /* with the ranks, where their time is apart */
    int32_t n_shaped;        /* wires through which bursts pass */
    int32_t n_priced, n;     /* parts that the price depends on; all parts */
    struct {
        int32_t wire;
        double beta, burst; /* seconds a byte, and for what passes at once */
        bool pulled;        /* and the ranks' own time is apart: they are as long at it */
    } shaped[MC_MAX_DIMS];
} mc_load_kind_t;

typedef struct {
    const mc_priced_t *graph;
    double bytes;
    mc_load_kind_t kind;
    int32_t n_means, n_blocks;
    double *weight;   /* by block, part and lane */
    double *offset;   /* by block and lane: seconds */
    double *at_group; /* by group: lanes of one block, or parts */
} mc_bounds_t;

/* A number of segments. */
typedef struct {
    uint32_t segments;
    double *load;     /* by step and part */
    double *to_go;    /* seconds by block, node and lane */
    double *least;    /* by node and priced part */
    int32_t n_blocks; /* of to_go that are filled in */
    double bound;     /* what the cheapest path costs at least; INFINITY: given up */
} mc_cut_t;

int mc_bounds_init(mc_bounds_t *b, const mc_priced_t *graph, const mc_links_t *links, double bytes);
void mc_bounds_free(mc_bounds_t *b);

/* Seconds of a path with that load. */
double mc_bounds_whole(const mc_bounds_t *b, const double *load);

/* Loads of all steps, and the first block of means. Lowers *good to the cheapest path that was met. */
int mc_cut_open(mc_bounds_t *b, mc_cut_t *cut, uint32_t segments, double *good);
/* Loads again, after steps have moved. */
void mc_cut_load(const mc_bounds_t *b, mc_cut_t *cut);
/* One block more; false where there is none. */
bool mc_cut_tighten(mc_bounds_t *b, mc_cut_t *cut, double *good);
/* The least parts; before paths are compared. */
int mc_cut_close(mc_bounds_t *b, mc_cut_t *cut);
void mc_cut_drop(mc_cut_t *cut);

static inline const double *mc_cut_step(const mc_bounds_t *b, const mc_cut_t *cut, int32_t step)
{
    return cut->load + (size_t)step * (size_t)b->kind.n;
}

/* Is every end of a path with that load, to `node`, dearer than `limit` seconds? *keen: the block that said so
 * last, and is asked first. */
bool mc_cut_dearer(const mc_bounds_t *b, const mc_cut_t *cut, const double *load, int32_t node,
                   double limit, int32_t *keen);

#endif
