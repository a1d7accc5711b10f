/*
 * Dynamic programming over the states of the graph of placements, with labels as for shortest paths under
 * several criteria (Martins 1984); for the search.
 *
 * In a given number of segments a path costs fill + (segments - 1) * busy. busy is a maximum over wires, so
 * the best path of a state need not continue the best one of another, and a single cost per state does not
 * do. Each state therefore has labels: partial paths from it to the end, each with its load. The parts of a load are
 * sums over phases, and the price of a path does not decrease as a part grows.
 *
 * A label is dropped
 * - if another label of its state dominates it: that one is cheaper whatever path leads to them;
 * - if no strategy within the limit has it: its load and, part by part, the least load of any path from the start to
 *   its state cost more than the limit;
 * - if its state is full: then the label of the highest bound. Only this may lose a strategy.
 */
#ifndef MC_COMPOSE_LABELS_H
#define MC_COMPOSE_LABELS_H

#include "compose/planner/priced.h"

/* Relative error that rounding of sums of seconds may cause; comparisons allow for it. */
static const double MC_SLACK = 1e-9;

/* Parts of a load, in seconds: [0] the fill; then the busy time of each wire, of each part of a network and, as one more,
 * of the ranks. Ranks that
 * share cores do the wires' work too: their time adds to that of the wires, so [0] has it. */
enum { MC_MOST_PARTS = 2 + MC_BUSY_WIRES };

/* A label: a partial path from a state to the end. */
typedef struct {
    int32_t step; /* of its first phase */
    int32_t next; /* the label of the rest of the path; -1: the path is empty */
    bool needs;   /* one of its phases needs this number of segments (the cut rule) */
    double bound; /* seconds: no strategy with it is cheaper */
    double load[MC_MOST_PARTS];
} mc_label_t;

/* The labels of all states, in one number of segments. */
typedef struct {
    const mc_priced_t *graph;
    const mc_planner_query_t *query;
    int32_t n_parts;
    uint32_t segments;
    double limit;   /* seconds: strategies above it are not wanted */
    double highest; /* bound of a label of the state, if it is full; else INFINITY */
    double *load;   /* by step: the parts of its load */
    double *before; /* by node: the least of each part over paths from the start to it */
    int32_t *n_useful, *useful; /* by group: its steps that are not dominated */
    uint32_t *first;            /* by node: index of its first label; one entry more than nodes */
    uint32_t n, capacity;
    mc_label_t *label; /* by node, in the order of enumeration */
    bool full;         /* a label was dropped as its state was full */
} mc_labels_t;

int mc_labels_init(mc_labels_t *l, const mc_priced_t *graph, const mc_planner_query_t *query);
void mc_labels_free(mc_labels_t *l);

/* Computes the loads of steps in `segments` segments. Returns a lower bound of the seconds of strategies; INFINITY if
 * there are none. */
double mc_labels_begin(mc_labels_t *l, uint32_t segments);
/* Finds all labels, at most `width` for a state, of strategies within the limit. The labels of the start, which are the
 * last ones, are whole strategies. */
int mc_labels_find(mc_labels_t *l, uint32_t width);
/* The limit with the slack of rounding. */
static inline double mc_labels_limit(const mc_labels_t *l)
{
    return l->limit * (1 + 2 * MC_SLACK);
}
/* Is any strategy within the limit that begins with a path to `node` of this load? */
bool mc_labels_lead_on(const mc_labels_t *l, uint32_t node, const double *load);

/* The load of a step, and the number of segments that it needs. */
double *mc_labels_step(const mc_labels_t *l, int32_t step);
uint32_t mc_labels_needed(const mc_labels_t *l, int32_t step);

/* Is load `a` of `n_parts` parts cheaper than `b` by at least `margin` seconds whatever load is added to both? May return
 * false although it is. */
bool mc_load_cheaper(int32_t n_parts, const double *a, const double *b, double margin);

#endif
