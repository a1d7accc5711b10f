/*
 * Dynamic programming over the states of the graph of placements, with labels as for shortest paths under
 * several criteria (Martins 1984); for the search.
 *
 * In a given number of segments a path costs fill + (segments - 1) * busy. busy is a maximum over wires, so
 * the best path of a state need not continue the best one of another, and a single cost per state does not
 * do. Each state therefore has labels: the partial paths from it to the end whose loads (loads.h) no other
 * one dominates. A label is also dropped if no strategy within the limit can contain it (bounds.h). The limit
 * is the cost of the incumbent, or somewhat more if several strategies are wanted.
 */
#ifndef MC_COMPOSE_LABELS_H
#define MC_COMPOSE_LABELS_H

#include "compose/planner/search/bounds.h"

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
    int32_t *first;      /* by node: index of its first label; one entry more than nodes */
    mc_label_t *label;   /* by node, in the order of enumeration */
    double *load, *mean; /* by label: the parts of its load, and their means */
    int32_t n, room;
} mc_labels_t;

static inline int32_t mc_label_step(uint64_t phase)
{
    return (int32_t)(uint32_t)phase;
}
static inline uint64_t mc_label_phase(int32_t hop, int32_t step)
{
    return (uint64_t)hop << 32 | (uint32_t)step;
}
static inline double *mc_label_load(const mc_bounds_t *b, const mc_labels_t *l, int32_t label)
{
    return l->load + (size_t)label * (size_t)b->kind.n;
}
static inline double *mc_label_mean(const mc_bounds_t *b, const mc_labels_t *l, int32_t label)
{
    return l->mean + (size_t)label * (size_t)b->kind.n_means;
}

int mc_labels_init(mc_labels_t *l, const mc_priced_t *graph);
void mc_labels_free(mc_labels_t *l);

/* Finds all labels in the bounds' number of segments, at most `most` for a state. The labels of the start, which are
 * the last ones, are whole strategies. */
int mc_labels_find(const mc_bounds_t *b, mc_labels_t *l, int32_t most);

#endif
