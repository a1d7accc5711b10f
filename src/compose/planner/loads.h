/*
 * Loads: what a phase adds to the price of a path in a given number of segments. The parts of a path's load
 * are sums over its phases, and the path's price does not decrease as any part grows. For the search.
 */
#ifndef MC_COMPOSE_LOADS_H
#define MC_COMPOSE_LOADS_H

#include "compose/planner/priced.h"

/*
 * Parts of a load, in seconds: [0] the fill; then the busy time of each wire and, if it counts apart, of the
 * ranks; then for each shaped wire the time of its bytes at full rate in the fill, in the busy time, and
 * of all bytes that it carries; last, for shaped wires of pulled dimensions, the part of the busy time that
 * is the ranks' own time too.
 */
enum { MC_SHAPED_PARTS = 3, MC_MOST_PARTS = 2 + (2 + MC_SHAPED_PARTS) * MC_MAX_DIMS };
/* Means: a view weighs the busy times of all wires equally, or of one wire, against the ranks' own time, in
 * one of MC_TURNS directions of the quadrant. */
enum {
    MC_TURNS = 4,
    MC_MOST_VIEWS = MC_TURNS * (MC_MAX_DIMS + 1),
    MC_MOST_MEANS = 2 * MC_MOST_VIEWS
};

/* Weights of the wires' busy times and of the ranks' own time in a mean. */
typedef struct {
    double wire[MC_MAX_DIMS], ranks;
} mc_load_view_t;

typedef struct {
    int32_t n_wires, n_busy;  /* n_busy: wires, and the ranks if their own time counts apart */
    int32_t n_shaped;         /* wires that let bursts pass */
    int32_t n;                /* parts */
    int32_t n_views, n_means; /* n_means: one per view, or two if there are bursts */
    struct {
        int32_t wire;
        double beta, burst; /* seconds per byte; seconds of a burst at full rate */
        /* index of the part of its bytes that are the ranks' own time too (mc_link_is_ranks_own); 0: none are */
        int32_t own;
    } shaped[MC_MAX_DIMS];
    mc_load_view_t view[MC_MOST_VIEWS];
} mc_load_kind_t;

mc_load_kind_t mc_load_kind(const mc_priced_t *graph, const mc_links_t *links);
/* The load of a step for a vector of `bytes` in `segments` segments. */
void mc_load_of(const mc_load_kind_t *kind, const mc_priced_t *graph, const mc_priced_step_t *step,
                double bytes, uint32_t segments, double *load);
/* The wire that a step keeps busy for the longest time. */
int32_t mc_load_wire(const mc_load_kind_t *kind, const mc_priced_t *graph,
                     const mc_priced_step_t *step, double bytes);
/* Seconds of `load` in a path whose load is `all`, which determines what part of bytes a burst takes off.
 * If both are the same, the price of the path. */
double mc_load_price(const mc_load_kind_t *kind, const double *load, const double *all);
/* Is load `a` cheaper than `b` by at least `margin` seconds whatever load is added to both? A path with load
 * `b` is then dominated. May return false although it is. */
bool mc_load_cheaper(const mc_load_kind_t *kind, const double *a, const double *b, double margin);
/*
 * Means are lower bounds of a load's price that are sums over phases: a maximum over wires is no less than
 * their mean, and a hypotenuse no less than its legs' projections. Of shaped bytes they count, in one
 * version, the part that passes after the burst in every strategy (`least`: least load of any strategy), and
 * in the other version all bytes, less one burst in all (mc_load_offsets).
 */
void mc_load_means(const mc_load_kind_t *kind, const double *load, const double *least,
                   uint32_t segments, double *mean);
/* The means of an empty path: 0, or less than 0 by the bursts. */
void mc_load_offsets(const mc_load_kind_t *kind, uint32_t segments, double *mean);

#endif
