/*
 * Lower bounds for the search: the loads of steps in one number of segments, and the least load of any beginning (a
 * path from the start to a state).
 *
 * The load of a partial path from a state to the end is added to the least load of any beginning, part by part and by
 * means over wires (loads.h); the sum's price is a lower bound. The first phase of a path handles the whole vector and
 * loads one wire most, so beginnings are divided into kinds by this wire. A partial path is above the limit if it is
 * above the limit with every kind.
 */
#ifndef MC_COMPOSE_BOUNDS_H
#define MC_COMPOSE_BOUNDS_H

#include "compose/planner/search/loads.h"

/* Relative error that rounding of sums of seconds may cause; comparisons allow for it. */
static const double MC_SLACK = 1e-9;

enum { MC_MOST_WIDTH = MC_MOST_PARTS + MC_MOST_MEANS };

typedef struct {
    const mc_priced_t *graph;
    mc_load_kind_t kind;
    int32_t width; /* numbers of a load: its parts and, behind them, its means */
    double bytes;
    uint32_t max_segments;      /* more only if a step needs them */
    bool paced;                 /* the cut rule applies: steps need segments */
    bool wants_all;             /* several strategies are wanted, so no step is left out */
    uint32_t segments;          /* those set last (mc_bounds_set) */
    double limit, quantum;      /* seconds: of the limit; unit that loads are rounded to */
    int32_t *wire;              /* by step: the wire that it keeps busiest */
    int32_t *n_useful, *useful; /* by group: its steps that are not dominated */
    double *step;               /* by step: its load, and the means of it */
    double *group;              /* by group: the least of each part over its steps */
    double *before;             /* by kind and node: the least of each part over beginnings */
} mc_bounds_t;

static inline uint32_t mc_bounds_needed(const mc_bounds_t *b, int32_t step)
{
    return b->paced ? b->graph->step[step].least_segments : 1;
}
static inline double *mc_bounds_step(const mc_bounds_t *b, int32_t step)
{
    return b->step + (size_t)step * (size_t)b->width;
}
/* By kind of beginnings and node. */
static inline double *mc_bounds_before(const mc_bounds_t *b, int32_t kind, int32_t node)
{
    const size_t at = (size_t)kind * (size_t)b->graph->n_nodes + (size_t)node;
    return b->before + at * (size_t)b->width;
}
/* The limit with the slack of rounding. */
static inline double mc_bounds_limit(const mc_bounds_t *b)
{
    return b->limit * (1 + 2 * MC_SLACK);
}

int mc_bounds_init(mc_bounds_t *b, const mc_priced_t *graph, const mc_planner_query_t *query,
                   bool wants_all);
void mc_bounds_free(mc_bounds_t *b);

/* Computes loads and beginnings in `segments` segments, for strategies within `limit`. Returns a lower bound of their
 * seconds; INFINITY if there are none. */
double mc_bounds_set(mc_bounds_t *b, uint32_t segments, double limit);
/* Does `load` dominate `other`, whatever precedes them? Of strategies of equal cost the first one in the order of
 * enumeration is wanted, so a later one must be cheaper by more than rounding. `earlier`: `load` is the earlier one. */
static inline bool mc_bounds_dominates(const mc_bounds_t *b, const double *load, bool earlier,
                                       const double *other)
{
    return load[0] <= other[0] &&
           mc_load_cheaper(&b->kind, load, other, earlier ? 0 : b->limit * MC_SLACK);
}
/* A lower bound of the seconds of a strategy whose parts and means are at least these; INFINITY if there is none. */
double mc_bounds_seconds(const mc_bounds_t *b, const double *sum);

#endif
