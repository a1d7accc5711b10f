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

/* Means are worked out so many at a time; in twos, which every machine adds and compares at once. */
enum { MC_LANES = 4 };
typedef double mc_pair_t __attribute__((vector_size(2 * sizeof(double)), aligned(sizeof(double))));
typedef union {
    double of[MC_LANES];
    mc_pair_t two[MC_LANES / 2];
} mc_lanes_t;

/* fill; what wires and ranks are busy; of shaped wires what their bytes take once, busy and all together, and
 * by how much more than others a phase may gain by a burst, once and busy. Wires that several dimensions share may have
 * one more. */
enum { MC_SHAPED_PARTS = 3, MC_MOST_PARTS = 2 + 6 * MC_MAX_DIMS };

typedef struct {
    int32_t n_wires, n_busy; /* with the ranks, where their time is apart */
    int32_t n_shaped;        /* wires through which bursts pass */
    int32_t n_priced, n;     /* parts that the price depends on; all parts */
    struct {
        int32_t wire;
        double beta, burst; /* seconds a byte, and for what passes at once */
        bool pulled;        /* and the ranks' own time is apart: they are as long at it */
        /* where that is so in some of its dimensions only: the part of what ranks are at it; 0: none */
        int32_t own;
    } shaped[MC_MAX_DIMS];
} mc_load_kind_t;

typedef struct {
    const mc_priced_t *graph;
    double bytes;
    mc_load_kind_t kind;
    double *fixed, *moved; /* seconds, by step and part: of any segment; of all bytes in one */
    uint64_t *parts;       /* by step: a bit for each part that may be more than 0 */
    int32_t n_means, n_blocks;
    mc_lanes_t *weight; /* by block and part */
    mc_lanes_t *offset; /* two a block: seconds */
    double *at_group;   /* by group and part */
} mc_bounds_t;

/* How often each part counts in so many segments: what a segment takes whatever its bytes, and what all bytes take. */
typedef struct {
    double fixed[MC_MOST_PARTS], moved[MC_MOST_PARTS];
} mc_times_t;

/* A number of segments. */
typedef struct {
    uint32_t segments;
    mc_times_t times;
    double *load;       /* by step and part; NULL: not known now */
    mc_lanes_t **block; /* seconds: by step, by group the least, by node to the end */
    double *least;      /* by node and priced part */
    int32_t n_blocks;   /* that are filled in */
    double bound;       /* what the cheapest path costs at least; INFINITY: given up */
} mc_cut_t;

/* Powers of two. */
enum { MC_MOST_CUTS = 16 };

/* The cheapest path that was met. */
typedef struct {
    double seconds;
    uint32_t segments;
    int32_t n_phases;
    uint64_t path[MC_MAX_PHASES];
} mc_good_t;

/* A phase: a hop and its step; compared, the order of enumeration. */
static inline uint64_t mc_path_phase(int32_t hop, int32_t step)
{
    return (uint64_t)hop << 32 | (uint32_t)step;
}

static inline int32_t mc_path_step(uint64_t phase)
{
    return (int32_t)(uint32_t)phase;
}

static inline int32_t mc_path_hop(uint64_t phase)
{
    return (int32_t)(phase >> 32);
}

int mc_bounds_init(mc_bounds_t *b, const mc_priced_t *graph, const mc_links_t *links, double bytes);
void mc_bounds_free(mc_bounds_t *b);
/* Anew, when steps were taken out of the graph. */
void mc_bounds_reload(mc_bounds_t *b);

/* Seconds of a path with that load. */
double mc_bounds_whole(const mc_bounds_t *b, const double *load);

/* The first block of means. Sets *good to what was met and is cheaper. */
int mc_cut_open(mc_bounds_t *b, mc_cut_t *cut, uint32_t segments, mc_good_t *good);
/* What is asked while paths are followed: loads of all steps, and the least parts. */
int mc_cut_close(mc_bounds_t *b, mc_cut_t *cut);
/* One block more, if there is one; of a cut that is closed. */
int mc_cut_tighten(mc_bounds_t *b, mc_cut_t *cut, mc_good_t *good);
void mc_cut_drop(mc_cut_t *cut);
/* Seconds that no path takes less than in so many segments or more, however few bytes there are. */
int mc_cut_floor(const mc_bounds_t *b, uint32_t segments, double *seconds);

static inline const double *mc_cut_step(const mc_bounds_t *b, const mc_cut_t *cut, int32_t step)
{
    return cut->load + (size_t)step * (size_t)b->kind.n;
}

/* Where its lanes are in a block. */
static inline int32_t mc_lane_of_group(const mc_bounds_t *b, int32_t group)
{
    return b->graph->n_steps + group;
}

static inline int32_t mc_lane_of_node(const mc_bounds_t *b, int32_t node)
{
    return b->graph->n_steps + b->graph->n_groups + node;
}

static inline mc_lanes_t *mc_block_steps(const mc_cut_t *cut, int32_t block)
{
    return cut->block[block];
}

static inline mc_lanes_t *mc_block_groups(const mc_bounds_t *b, const mc_cut_t *cut, int32_t block)
{
    return cut->block[block] + mc_lane_of_group(b, 0);
}

static inline mc_lanes_t *mc_block_nodes(const mc_bounds_t *b, const mc_cut_t *cut, int32_t block)
{
    return cut->block[block] + mc_lane_of_node(b, 0);
}

/* The means of one block of a load, of which no other than `parts` are more than 0. */
mc_lanes_t mc_block_mean(const mc_bounds_t *b, int32_t block, const double *load, uint64_t parts);

/* Is the sum above `limit`, of any mean? */
static inline bool mc_lanes_above(const mc_lanes_t *so_far, const mc_lanes_t *next,
                                  const mc_lanes_t *to_go, double limit)
{
    typedef int64_t mask_t
        __attribute__((vector_size(2 * sizeof(double)), aligned(sizeof(double))));
    mask_t any = {0};
    for (int32_t i = 0; i < MC_LANES / 2; i++)
        any |= so_far->two[i] + next->two[i] + to_go->two[i] > limit;
    return any[0] | any[1];
}

/* Where a path has got, by block, is every end of it dearer than `limit` seconds, if it goes on by `next` (a step, whose
 * lane has its number, or whatever step of a group), to a node? *keen: the block that said so last, and is asked
 * first. */
static inline bool mc_cut_dearer(const mc_cut_t *cut, const mc_lanes_t *so_far, int32_t next,
                                 int32_t node, double limit, int32_t *keen)
{
    const int32_t n = cut->n_blocks;
    for (int32_t i = 0, block = *keen < n ? *keen : 0; i < n;
         i++, block = block + 1 < n ? block + 1 : 0) {
        const mc_lanes_t *const lanes = cut->block[block];
        if (mc_lanes_above(&so_far[block], &lanes[next], &lanes[node], limit)) {
            *keen = block;
            return true;
        }
    }
    return false;
}

/* Is it, if each part of its load grew by the least it can? */
bool mc_cut_least_dearer(const mc_bounds_t *b, const mc_cut_t *cut, const double *load,
                         int32_t node, double limit);

#endif
