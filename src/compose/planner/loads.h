/*
 * What a phase adds to the price of a path in a number of segments: a load, whose parts are summed over the path's
 * phases, and with each of which the price grows. For the search.
 */
#ifndef MC_COMPOSE_LOADS_H
#define MC_COMPOSE_LOADS_H

#include "compose/planner/priced.h"

/* Fill; what wires and ranks are busy; of shaped wires what their bytes take once, busy and all together. Wires that
 * several dimensions share may have one more. */
enum { MC_SHAPED_PARTS = 3, MC_MOST_PARTS = 2 + (2 + MC_SHAPED_PARTS) * MC_MAX_DIMS };
/* Wires: all, and each; seen in several directions of a right angle to the ranks' own time. */
enum { MC_TURNS = 4, MC_MOST_MEANS = 2 * MC_TURNS * (MC_MAX_DIMS + 1) };

typedef struct {
    int32_t n_wires, n_busy;  /* with the ranks, where their time is apart */
    int32_t n_shaped;         /* wires through which bursts pass */
    int32_t n;                /* parts */
    int32_t n_views, n_means; /* wires in all directions; these once more where there are bursts */
    struct {
        int32_t wire;
        double beta, burst; /* seconds a byte, and for what passes at once */
        bool pulled;        /* and the ranks' own time is apart: they are as long at it */
        /* where that is so in some of its dimensions only: the part of what ranks are at it; 0: none */
        int32_t own;
    } shaped[MC_MAX_DIMS];
} mc_load_kind_t;

mc_load_kind_t mc_load_kind(const mc_priced_t *graph, const mc_links_t *links);
/* Seconds by part of a step with all bytes, in so many segments. */
void mc_load_of(const mc_load_kind_t *kind, const mc_priced_t *graph, const mc_priced_step_t *step,
                double bytes, uint32_t segments, double *load);
/* The wire that a step keeps busiest. */
int32_t mc_load_wire(const mc_load_kind_t *kind, const mc_priced_t *graph,
                     const mc_priced_step_t *step, double bytes);
/* Seconds of a path with load `all` that are for `load`, a part of it, or all of it. */
double mc_load_price(const mc_load_kind_t *kind, const double *load, const double *all);
/* Is a path with load `a` cheaper by `margin` seconds at least than with `b`, whatever is added to both? */
bool mc_load_cheaper(const mc_load_kind_t *kind, const double *a, const double *b, double margin);
/*
 * The price of a load is no less than any of its means, which are sums over phases: of all wires, and of each alone, in
 * several directions. What a burst takes off shaped bytes is said of them in two ways: the part that any strategy has
 * pass late (by the `least` that is carried), or all bytes less a burst, once.
 */
void mc_load_means(const mc_load_kind_t *kind, const double *load, const double *least,
                   uint32_t segments, double *mean);
/* What each begins with: less than 0 for the bursts. */
void mc_load_offsets(const mc_load_kind_t *kind, uint32_t segments, double *mean);

#endif
