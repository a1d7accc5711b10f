/*
 * Paths are followed from the start in the order of enumeration, and priced exactly at the end. A path is dropped when
 * in no number of segments a label continues it within the limit. The limit is somewhat above the cost of a good
 * strategy, and is raised until enough strategies are found.
 */
#include "compose/planner/search/search_several.h"

#include <math.h>
#include <stdlib.h>

/* The first limit is the cost of a good strategy plus this part of it: few strategies lie within it, and few searches
 * need a second one. */
static const double FIRST_EXCESS = 0.02;

typedef struct {
    mc_candidates_t *candidates;
    int32_t n_cuts;
    mc_bounds_t bounds[MC_MOST_CUTS]; /* by cut */
    mc_labels_t labels[MC_MOST_CUTS];
    bool left_out; /* a path was dropped as above the limit */
    /* of the path's first phases: load in each cut, segments needed */
    double *load;
    uint32_t needed[MC_MAX_PHASES + 1];
} several_t;

static double *load_at(const several_t *s, int32_t n_phases, int32_t cut)
{
    return s->load + (size_t)(n_phases * s->n_cuts + cut) * (size_t)s->bounds[0].width;
}

static double wide_limit(const several_t *s)
{
    return s->candidates->limit * (1 + 2 * MC_SLACK);
}

static bool leads_on(const several_t *s, int32_t n_phases, int32_t node, int32_t cut)
{
    const mc_bounds_t *const b = &s->bounds[cut];
    const mc_labels_t *const l = &s->labels[cut];
    const double *const load = load_at(s, n_phases, cut);
    double sum[MC_MOST_PARTS];
    for (int32_t i = l->first[node]; i < l->first[node + 1]; i++) {
        const double *const after = mc_label_load(b, l, i);
        for (int32_t k = 0; k < b->kind.n; k++)
            sum[k] = load[k] + after[k];
        if (mc_load_price(&b->kind, sum) <= wide_limit(s))
            return true;
    }
    return false;
}

/* Is every strategy that begins with the path's first phases, which lead to `node`, above the limit? */
static bool is_above(const several_t *s, int32_t n_phases, int32_t node)
{
    if (s->candidates->limit == INFINITY)
        return false;
    for (int32_t cut = 0; cut < s->n_cuts; cut++)
        if (s->needed[n_phases] <= mc_cut_segments(cut) && leads_on(s, n_phases, node, cut))
            return false;
    return true;
}

/* May a strategy that needs `needed` segments have this number? */
static bool is_allowed(const several_t *s, uint32_t needed, uint32_t segments)
{
    return segments >= needed && (segments <= s->bounds[0].max_segments || segments == needed);
}

static void price_end(several_t *s, int32_t n_phases)
{
    mc_candidates_t *const c = s->candidates;
    const mc_phase_cost_t *const cost = mc_candidates_cost(c, n_phases);
    double best = INFINITY;
    uint32_t segments = 1;
    for (int32_t cut = 0; cut < s->n_cuts; cut++) {
        if (!is_allowed(s, s->needed[n_phases], mc_cut_segments(cut)))
            continue;
        const double seconds = mc_candidates_seconds(c, cost, mc_cut_segments(cut));
        if (seconds < best) {
            best = seconds;
            segments = mc_cut_segments(cut);
        }
    }
    mc_candidates_add(c, n_phases, segments, best);
}

static void explore(several_t *s, int32_t node, int32_t n_phases);

static void explore_step(several_t *s, int32_t h, int32_t step, int32_t n_phases)
{
    mc_candidates_t *const c = s->candidates;
    const int32_t next = c->graph->hop[h].next;
    const uint32_t needed = mc_bounds_needed(&s->bounds[0], step);
    for (int32_t cut = 0; cut < s->n_cuts && c->limit < INFINITY; cut++) {
        const double *const by = mc_bounds_step(&s->bounds[cut], step);
        const double *const load = load_at(s, n_phases, cut);
        double *const longer = load_at(s, n_phases + 1, cut);
        for (int32_t k = 0; k < s->bounds[cut].kind.n; k++)
            longer[k] = load[k] + by[k];
    }
    s->needed[n_phases + 1] = needed > s->needed[n_phases] ? needed : s->needed[n_phases];
    if (is_above(s, n_phases + 1, next)) {
        s->left_out = true;
        return;
    }
    c->path[n_phases] = mc_label_phase(h, step);
    c->n_exact = c->n_exact < n_phases ? c->n_exact : n_phases;
    explore(s, next, n_phases + 1);
}

static void explore(several_t *s, int32_t node, int32_t n_phases)
{
    const mc_priced_t *const graph = s->candidates->graph;
    const int32_t first = graph->first_hop[node], end = graph->first_hop[node + 1];
    if (first == end)
        price_end(s, n_phases);
    for (int32_t h = first; h < end; h++) {
        const mc_priced_group_t group = graph->group[graph->hop[h].group];
        for (int32_t i = group.first; i < group.first + group.n && !s->candidates->status; i++)
            explore_step(s, h, i, n_phases);
    }
}

static void explore_all(several_t *s)
{
    mc_candidates_t *const c = s->candidates;
    for (int32_t cut = 0; cut < s->n_cuts && c->limit < INFINITY && !c->status; cut++) {
        mc_bounds_set(&s->bounds[cut], mc_cut_segments(cut), c->limit);
        c->status = mc_labels_find(&s->bounds[cut], &s->labels[cut], mc_labels_per_state(c->graph));
    }
    c->n = 0;
    c->n_priced = 0;
    c->n_exact = 0;
    s->left_out = false;
    if (!c->status)
        explore(s, c->graph->n_nodes - 1, 0);
}

/* Sets the limit to the cost of a good strategy, for `most` strategies; for all to 0. */
static int find_good(several_t *s, const mc_planner_query_t *query, uint32_t most, double *good)
{
    mc_search_best_t *const first = malloc(sizeof *first);
    const int status = first ? mc_search_best_init(first, s->candidates, query, true)
                             : mc_fail_memory("the planner's paths");
    if (!status) {
        s->n_cuts = first->n_cuts;
        if (most)
            mc_search_good(first);
        *good = most ? s->candidates->limit : 0;
        mc_search_best_free(first);
    }
    free(first);
    return status ? status : s->candidates->status;
}

static int prepare(several_t *s, const mc_planner_query_t *query)
{
    mc_candidates_t *const c = s->candidates;
    int status = MESHCOLL_OK;
    for (int32_t cut = 0; cut < s->n_cuts && !status; cut++) {
        status = mc_bounds_init(&s->bounds[cut], c->graph, query, true);
        if (!status)
            status = mc_labels_init(&s->labels[cut], c->graph);
    }
    const size_t rows = (size_t)(MC_MAX_PHASES + 1) * (size_t)s->n_cuts;
    s->load = status ? NULL : calloc(rows * (size_t)s->bounds[0].width, sizeof *s->load);
    return status || s->load ? status : mc_fail_memory("the planner's paths");
}

static void release(several_t *s)
{
    for (int32_t cut = 0; cut < s->n_cuts; cut++) {
        mc_labels_free(&s->labels[cut]);
        mc_bounds_free(&s->bounds[cut]);
    }
    free(s->load);
}

int mc_search_several(mc_candidates_t *candidates, const mc_planner_query_t *query, uint32_t most)
{
    several_t *const s = calloc(1, sizeof *s);
    double good, excess = FIRST_EXCESS;
    if (!s)
        return mc_fail_memory("the planner's paths");
    s->candidates = candidates;
    s->needed[0] = 1;
    int status = find_good(s, query, most, &good);
    if (!status)
        status = prepare(s, query);
    candidates->most = most;
    while (!status) {
        candidates->limit = good > 0 ? good * (1 + excess) : INFINITY;
        explore_all(s);
        status = candidates->status;
        if (!s->left_out || candidates->n >= most)
            break;
        excess *= 4;
    }
    release(s);
    free(s);
    mc_candidates_settle(candidates);
    return status;
}
