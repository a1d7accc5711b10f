/*
 * Loads: what a phase adds to the price of a path in a given number of segments. The parts of a path's load
 * are sums over its phases, and the path's price does not decrease as any part grows. For the search.
 */
#ifndef MC_COMPOSE_LOADS_H
#define MC_COMPOSE_LOADS_H

#include "compose/planner/search/priced.h"

/* Parts of a load, in seconds: [0] the fill; then the busy time of each wire. Ranks whose own time counts
 * apart are one more wire, unless they share cores: then it adds to that of the wires, so [0] has it too. */
enum { MC_MOST_PARTS = 2 + MC_MAX_DIMS };
/* Means of the busy times: of all wires, and of each alone. */
enum { MC_MOST_MEANS = 2 + MC_MAX_DIMS };

typedef struct {
    int32_t n_wires;
    bool shares_cores;
    int32_t n;       /* parts */
    int32_t n_means; /* 1 if there is one wire */
} mc_load_kind_t;

mc_load_kind_t mc_load_kind(const mc_priced_t *graph);
/* The load of a step for a vector of `bytes` in `segments` segments. */
void mc_load_of(const mc_load_kind_t *kind, const mc_priced_t *graph, const mc_priced_step_t *step,
                double bytes, uint32_t segments, double *load);
/* The wire that a step keeps busy for the longest time. */
int32_t mc_load_wire(const mc_load_kind_t *kind, const mc_priced_t *graph,
                     const mc_priced_step_t *step, double bytes);
/* The price of a path with this load, in seconds. */
double mc_load_price(const mc_load_kind_t *kind, const double *load);
/* Is load `a` cheaper than `b` by at least `margin` seconds whatever load is added to both? A path with load
 * `b` is then dominated. May return false although it is. */
bool mc_load_cheaper(const mc_load_kind_t *kind, const double *a, const double *b, double margin);
/* Means are lower bounds of a load's price that are sums over phases: a maximum over wires is no less than
 * their mean. */
void mc_load_means(const mc_load_kind_t *kind, const double *load, double *mean);

#endif
