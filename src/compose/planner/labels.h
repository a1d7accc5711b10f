/*
 * Dynamic programming over the states of the graph of placements, with labels as for shortest paths under
 * several criteria (Martins 1984); for the search.
 *
 * In a given number of segments a path costs fill + (segments - 1) * busy. busy is a maximum over wires, so
 * the best path of a state need not continue the best one of another, and a single cost per state does not
 * do. Each state therefore has labels: the partial paths from it to the end whose loads (loads.h) no other
 * one dominates.
 *
 * A label is also dropped if no strategy within the limit can contain it. The limit is the cost of the
 * incumbent, or somewhat more if several strategies are wanted. The label's load is added to the least load
 * of any beginning (a path from the start to the state), part by part and by means over wires; the sum's
 * price is a lower bound. The first phase of a path handles the whole vector and loads one wire most, so
 * beginnings are divided into kinds by this wire. A label is dropped when it is above the limit with every
 * kind.
 */
#ifndef MC_COMPOSE_LABELS_H
#define MC_COMPOSE_LABELS_H

#include "compose/planner/loads.h"

/* Relative error that rounding of sums of seconds may cause; comparisons allow for it. */
static const double MC_SLACK = 1e-9;

/*
 * The most labels of all states together, divided equally among the states. It bounds memory and time, and
 * is the only rule that may lose the cheapest strategy. A state that has too many labels drops those of the
 * highest rank (mc_label_t). What searches need: docs/lab-notes/constants.md.
 */
enum { MC_MOST_LABELS = 1 << 19 };

/* A label: a partial path from a state to the end. */
typedef struct {
    uint64_t phase; /* its first phase: hop and step; their order is that of enumeration */
    int32_t next;   /* the label of the rest of the path; -1: the path is empty */
    uint32_t kinds; /* kinds of beginnings with which it may be within the limit, a bit each */
    bool needs;     /* one of its phases needs this number of segments (the cut rule) */
    /* seconds: the lower bound of a strategy with it, plus its own part of that; less is better */
    double rank;
} mc_label_t;

/* The labels of all states, in one number of segments. */
typedef struct {
    uint32_t segments;
    double *step;        /* by step: its load, and the means of it */
    int32_t *first;      /* by node: index of its first label; one entry more than nodes */
    mc_label_t *label;   /* by node, in the order of enumeration */
    double *load, *mean; /* by label: the parts of its load, and their means */
    int32_t n, room;
} mc_labels_t;

/* What the search knows of steps and beginnings, in the number of segments opened last (mc_ways_open). */
typedef struct {
    const mc_priced_t *graph;
    mc_load_kind_t kind;
    int32_t width; /* numbers of a load: its parts and, behind them, its means */
    double bytes;
    uint32_t max_segments;        /* more only if a step needs them */
    bool streams;                 /* the cut rule applies: steps need segments */
    bool wants_all;               /* several strategies are wanted, so no step is left out */
    int32_t *wire;                /* by step: the wire that it keeps busiest */
    double *group;                /* by group: the least of each part over its steps */
    double *before;               /* by kind and node: the least of each part over beginnings */
    int32_t *n_kept, *kept;       /* by group: its steps that are not dominated */
    double limit, quantum;        /* seconds: of the limit; unit that loads are rounded to */
    double offset[MC_MOST_MEANS]; /* the means of an empty path (mc_load_offsets) */
} mc_ways_t;

static inline uint32_t mc_ways_needed(const mc_ways_t *w, int32_t step)
{
    return w->streams ? w->graph->step[step].least_segments : 1;
}
static inline int32_t mc_label_step(uint64_t phase)
{
    return (int32_t)(uint32_t)phase;
}
static inline uint64_t mc_label_phase(int32_t hop, int32_t step)
{
    return (uint64_t)hop << 32 | (uint32_t)step;
}
static inline double *mc_label_load(const mc_ways_t *w, const mc_labels_t *l, int32_t label)
{
    return l->load + (size_t)label * (size_t)w->kind.n;
}
static inline double *mc_label_mean(const mc_ways_t *w, const mc_labels_t *l, int32_t label)
{
    return l->mean + (size_t)label * (size_t)w->kind.n_means;
}
static inline double *mc_label_step_load(const mc_ways_t *w, const mc_labels_t *l, int32_t step)
{
    return l->step + (size_t)step * (size_t)w->width;
}

int mc_ways_init(mc_ways_t *w, const mc_priced_t *graph, const mc_links_t *links,
                 const mc_planner_query_t *query, bool wants_all);
void mc_ways_free(mc_ways_t *w);
int mc_labels_init(mc_labels_t *l, const mc_ways_t *w);
void mc_labels_free(mc_labels_t *l);

/* Computes loads and beginnings in `segments` segments, for strategies within `limit`. Returns a lower bound
 * of their seconds; INFINITY if there are none. */
double mc_ways_open(mc_ways_t *w, mc_labels_t *l, uint32_t segments, double limit);
/* Finds all labels in the number of segments opened last, at most `most` for a state. The labels of the
 * start, which are the last ones, are whole strategies. */
int mc_labels_find(const mc_ways_t *w, mc_labels_t *l, int32_t most);

#endif
