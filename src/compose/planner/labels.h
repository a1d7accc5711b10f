/*
 * Dynamic programming over the states of the graph of placements; for the search.
 *
 * For each number of segments a path costs fill + (segments - 1) * busy, and busy is a maximum over wires, with which
 * no shortest path can be found. So a state keeps, of all ways from there to the end, those whose loads (loads.h) are
 * not nowhere less than another's: its labels. A label is left that comes to more than the limit even if all before
 * it costs the least it can, part by part or by a mean over wires. What comes first has the whole vector, and one wire has
 * most of it: so beginnings are of kinds, by the wire that their first phase keeps busiest, and each kind must be too
 * dear.
 */
#ifndef MC_COMPOSE_LABELS_H
#define MC_COMPOSE_LABELS_H

#include "compose/planner/loads.h"

/* Sums of seconds are compared after rounding of this much. */
static const double MC_SLACK = 1e-9;

/*
 * The one rule that cuts a search short: all states together have so many labels at most, each the same number. Those of
 * the least sum of what they cost themselves and what any strategy with them costs at least are kept. An allreduce, which
 * has most states, has 2427 labels a state in three dimensions and 404 in four; of presets none needed more than 20 and 109.
 */
enum { MC_MOST_LABELS = 1 << 19 };

/* A way from a state to the end. */
typedef struct {
    uint64_t phase; /* the first: hop and step; compared, the order of enumeration */
    int32_t next;   /* the label behind it; -1: this is the end */
    uint32_t kinds; /* of beginnings with which it may be within the limit, a bit each */
    bool needs;     /* one of its phases wants as many segments */
    double rank;    /* what decides where there are too many, in seconds */
} mc_label_t;

/* Of one number of segments. */
typedef struct {
    uint32_t segments;
    double *step;   /* by step: its load */
    int32_t *first; /* by node, and one more: its labels, in the order of enumeration */
    mc_label_t *label;
    double *load, *mean; /* by label: parts of its load; means of these */
    int32_t n, room;
} mc_labels_t;

/* What is known of all steps and beginnings, in the number of segments that was opened last. */
typedef struct {
    const mc_priced_t *graph;
    mc_load_kind_t kind;
    int32_t width; /* of a load: parts and, behind them, means of these */
    double bytes;
    uint32_t max_segments;        /* more only where a step wants them */
    bool streams;                 /* steps need segments */
    bool wants_all;               /* and not the best alone */
    int32_t *wire;                /* by step: the one it keeps busiest */
    double *group;                /* by group: the least of each part */
    double *before;               /* by kind and node: the same of all ways to it */
    int32_t *n_kept, *kept;       /* by group: steps that another one does not replace */
    double limit, quantum;        /* seconds; of loads */
    double offset[MC_MOST_MEANS]; /* that means begin with */
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

/* Loads in so many segments, for strategies within `limit`: seconds that none of them takes less than. */
double mc_ways_open(mc_ways_t *w, mc_labels_t *l, uint32_t segments, double limit);
/* All labels in the number of segments opened last, `most` a state. Those of the start, which come last, are strategies. */
int mc_labels_find(const mc_ways_t *w, mc_labels_t *l, int32_t most);

#endif
