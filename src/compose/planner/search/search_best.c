/*
 * In each number of segments the labels of the start (labels.h) are the strategies that no other one dominates; those
 * within the limit are priced exactly. The first pass has one label per state and gives the first incumbent, whose
 * cost is the limit. The second pass has all labels, and visits the number of segments with the lowest bound first.
 */
#include "compose/planner/search/search_best.h"

#include <math.h>

int32_t mc_labels_per_state(const mc_priced_t *graph)
{
    const int32_t n = MC_MOST_LABELS / graph->n_nodes;
    return n > 0 ? n : 1;
}

/* Up to max_segments, and up to what any step needs. */
static int32_t count_cuts(const mc_bounds_t *b)
{
    uint32_t most = b->max_segments;
    int32_t n = 1;
    for (int32_t i = 0; i < b->graph->n_steps; i++) {
        const uint32_t needed = mc_bounds_needed(b, i);
        most = needed > most ? needed : most;
    }
    while (n < MC_MOST_CUTS && mc_cut_segments(n) <= most)
        n++;
    return n;
}

int mc_search_best_init(mc_search_best_t *s, mc_candidates_t *candidates,
                        const mc_planner_query_t *query, bool wants_all)
{
    *s = (mc_search_best_t){.candidates = candidates};
    int status = mc_bounds_init(&s->bounds, candidates->graph, query, wants_all);
    if (status)
        return status;
    s->n_cuts = count_cuts(&s->bounds);
    status = mc_labels_init(&s->labels, candidates->graph);
    if (status)
        mc_bounds_free(&s->bounds);
    return status;
}

void mc_search_best_free(mc_search_best_t *s)
{
    mc_labels_free(&s->labels);
    mc_bounds_free(&s->bounds);
}

/* Prices the strategy of a label of the start, unless it has more segments than allowed. */
static void price_label(mc_search_best_t *s, int32_t label)
{
    mc_candidates_t *const c = s->candidates;
    const mc_labels_t *const l = &s->labels;
    const uint32_t segments = s->bounds.segments;
    int32_t n = 0;
    if (segments > s->bounds.max_segments && !l->label[label].needs)
        return;
    for (; l->label[label].next >= 0; label = l->label[label].next)
        c->path[n++] = l->label[label].phase;
    c->n_exact = 0;
    mc_candidates_add(c, n, segments, mc_candidates_seconds(c, mc_candidates_cost(c, n), segments));
}

static double label_price(const mc_search_best_t *s, int32_t label)
{
    const double *const load = mc_label_load(&s->bounds, &s->labels, label);
    return mc_load_price(&s->bounds.kind, load);
}

static double wide_limit(const mc_candidates_t *c)
{
    return c->limit * (1 + 2 * MC_SLACK);
}

/* Searches with at most `most` labels per state. */
static void search_cut(mc_search_best_t *s, int32_t cut, int32_t most)
{
    mc_candidates_t *const c = s->candidates;
    const mc_labels_t *const l = &s->labels;
    s->bound[cut] = mc_bounds_set(&s->bounds, mc_cut_segments(cut), c->limit);
    if (s->bound[cut] == INFINITY || s->bound[cut] > wide_limit(c))
        return;
    c->status = mc_labels_find(&s->bounds, &s->labels, most);
    for (int32_t i = l->first[c->graph->n_nodes - 1]; i < l->n && !c->status; i++)
        if (label_price(s, i) <= wide_limit(c))
            price_label(s, i);
}

void mc_search_good(mc_search_best_t *s)
{
    for (int32_t cut = 0; cut < s->n_cuts && !s->candidates->status; cut++)
        search_cut(s, cut, 1);
}

/* The cut with the lowest bound of those not searched yet, or -1 if none can beat the limit. */
static int32_t next_cut(const mc_search_best_t *s)
{
    int32_t next = 0;
    for (int32_t cut = 1; cut < s->n_cuts; cut++)
        next = s->bound[cut] < s->bound[next] ? cut : next;
    const bool may_be = s->bound[next] < INFINITY && s->bound[next] <= wide_limit(s->candidates);
    return may_be ? next : -1;
}

void mc_search_best(mc_search_best_t *s)
{
    mc_search_good(s);
    for (int32_t cut; !s->candidates->status && (cut = next_cut(s)) >= 0;) {
        search_cut(s, cut, mc_labels_per_state(s->candidates->graph));
        s->bound[cut] = INFINITY;
    }
}
