#include "compose/planner/search.h"

#include "compose/planner/labels.h"
#include "compose/planner/ranking.h"

#include <math.h>

/* Numbers of segments that a search tries: powers of two, each a cut. */
enum { MOST_CUTS = 16 };
static uint32_t cut_segments(int32_t cut)
{
    return UINT32_C(1) << cut;
}

/* Several strategies are looked for within the cost of the cheapest plus this part of it, or more of it. */
static const double FIRST_EXCESS = 0.02, MOST_EXCESS = 100;

typedef struct {
    const mc_priced_t *graph;
    const mc_planner_query_t *query;
    mc_ranking_t *ranking;
    mc_labels_t labels;
    double limit;   /* seconds of the last strategy that is wanted */
    uint32_t most;  /* strategies wanted; 0: all */
    uint32_t width; /* labels of a state */
    uint32_t done;  /* cuts whose strategies within the limit are all known, a bit each */
    int32_t n_cuts;
    int32_t n_phases, step[MC_MAX_PHASES]; /* the path that is followed or priced */
} search_t;

/* Exact prices ----------------------------------------------------------------------------------- */

static mc_strategy_t strategy_of(const search_t *s)
{
    mc_strategy_t strategy = {.collective = s->graph->graph.collective, .n_phases = s->n_phases};
    for (int32_t i = 0; i < s->n_phases; i++)
        strategy.phase[i] = s->graph->step[s->step[i]].phase;
    return strategy;
}

static uint32_t needed_by_path(const search_t *s)
{
    uint32_t needed = 1;
    for (int32_t i = 0; i < s->n_phases; i++) {
        const uint32_t by_step = mc_labels_needed(&s->labels, s->step[i]);
        needed = by_step > needed ? by_step : needed;
    }
    return needed;
}

/* Sets seconds and segments to those of the cheapest cut that is allowed. */
static void find_cut(const search_t *s, const mc_phase_cost_t *cost, mc_ranked_t *path)
{
    const mc_links_t *const links = s->graph->links;
    const uint32_t needed = needed_by_path(s);
    for (int32_t cut = 0; cut < s->n_cuts; cut++) {
        const uint32_t segments = cut_segments(cut);
        if (segments < needed || (segments > s->query->max_segments && segments != needed))
            continue;
        const double seconds = mc_strategy_with_call(
            mc_phase_cost_seconds(cost, links, segments, s->query->bytes), links);
        if (seconds < path->seconds) {
            path->seconds = seconds;
            path->strategy.segments = segments;
        }
    }
}

/* Forgets what is above the limit of the strategies that are wanted. */
static void settle(search_t *s)
{
    mc_ranking_settle(s->ranking, s->most);
    if (s->most && s->ranking->n == s->most)
        s->labels.limit = s->limit = s->ranking->list[s->most - 1].seconds;
}

/* Prices the path, and adds it if it is within the limit. */
static int add_path(search_t *s)
{
    enum { ROOM = 64 };
    mc_ranked_t path = {.strategy = strategy_of(s), .seconds = INFINITY};
    mc_phase_cost_t cost = {.once = mc_cost_zero(), .busy = mc_cost_zero()};
    for (int32_t i = 0; i < s->n_phases; i++)
        cost = mc_phase_cost_add(&cost, &s->graph->step[s->step[i]].cost);
    find_cut(s, &cost, &path);
    s->ranking->considered++;
    if (path.seconds > s->limit)
        return MESHCOLL_OK;
    const int status = mc_ranking_add(s->ranking, &path);
    if (s->most && s->ranking->n >= 2 * s->most + ROOM)
        settle(s);
    return status;
}

/* The search ------------------------------------------------------------------------------------- */

/* Adds the paths of the start's labels. */
static int add_labels(search_t *s)
{
    const mc_labels_t *const l = &s->labels;
    int status = MESHCOLL_OK;
    for (uint32_t i = l->first[s->graph->n_nodes - 1]; i < l->n && !status; i++) {
        s->n_phases = 0;
        for (int32_t at = (int32_t)i; l->label[at].next >= 0; at = l->label[at].next)
            s->step[s->n_phases++] = l->label[at].step;
        status = add_path(s);
    }
    return status;
}

/* Are there as many strategies as wanted that cost nothing, as on links of zeros? All others do so, too. The cheapest
 * one, found before, may be in the list twice. */
static bool has_free_ones(const search_t *s)
{
    return s->limit == 0 && s->ranking->n > s->most;
}

static int walk(search_t *s, uint32_t node, const double *load);

static int walk_step(search_t *s, uint32_t next, int32_t step, const double *load)
{
    const mc_labels_t *const l = &s->labels;
    const double *const by = mc_labels_step(l, step);
    double longer[MC_MOST_PARTS];
    if (mc_labels_needed(l, step) > l->segments)
        return MESHCOLL_OK;
    for (int32_t k = 0; k < l->n_parts; k++)
        longer[k] = load[k] + by[k];
    if (s->most && (has_free_ones(s) || !mc_labels_lead_on(l, next, longer)))
        return MESHCOLL_OK;
    s->step[s->n_phases++] = step;
    const int status = walk(s, next, longer);
    s->n_phases--;
    return status;
}

/* Adds all strategies that begin with the path, which leads to `node` and has that load, and are within the limit. */
static int walk(search_t *s, uint32_t node, const double *load)
{
    const mc_priced_t *const g = s->graph;
    const uint32_t first = g->first_hop[node], end = g->first_hop[node + 1];
    int status = first == end ? add_path(s) : MESHCOLL_OK;
    for (uint32_t h = first; h < end; h++) {
        const mc_priced_group_t group = g->group[g->hop[h].group];
        for (int32_t i = group.first; i < group.first + group.n && !status; i++)
            status = walk_step(s, (uint32_t)g->hop[h].next, i, load);
    }
    return status;
}

static int walk_all(search_t *s)
{
    static const double none[MC_MOST_PARTS];
    s->n_phases = 0;
    return walk(s, s->graph->n_nodes - 1, none);
}

/* Searches one number of segments, unless no strategy there is within the limit. */
static int search_cut(search_t *s, int32_t cut, uint32_t width)
{
    mc_labels_t *const l = &s->labels;
    const double bound = mc_labels_begin(l, cut_segments(cut));
    l->limit = s->limit;
    s->done |= UINT32_C(1) << cut;
    if (bound == INFINITY || bound > mc_labels_limit(l))
        return MESHCOLL_OK;
    int status = mc_labels_find(l, width);
    if (l->full)
        s->done &= ~(UINT32_C(1) << cut);
    if (!status)
        status = s->most == 1 ? add_labels(s) : walk_all(s);
    settle(s);
    return status;
}

static int search_cuts(search_t *s, uint32_t width)
{
    int status = MESHCOLL_OK;
    for (int32_t cut = 0; cut < s->n_cuts && !status; cut++)
        if (!(s->done & UINT32_C(1) << cut))
            status = search_cut(s, cut, width);
    return status;
}

static int search_best(search_t *s)
{
    s->most = 1;
    const int status = search_cuts(s, 1);
    return status ? status : search_cuts(s, s->width);
}

/* The limit is raised until enough strategies are within it. */
static int search_several(search_t *s)
{
    const double best = s->limit;
    int status = MESHCOLL_OK;
    s->most = s->query->most;
    for (double excess = FIRST_EXCESS; s->ranking->n < s->most && excess < MOST_EXCESS && !status;
         excess *= 4) {
        s->limit = best * (1 + excess);
        s->done = 0;
        status = search_cuts(s, s->width);
    }
    return status;
}

/* Every step is allowed in the last cut, so all paths are walked there. */
static int search_all(search_t *s)
{
    s->done = (UINT32_C(1) << s->n_cuts) - 1;
    mc_labels_begin(&s->labels, cut_segments(s->n_cuts - 1));
    const int status = walk_all(s);
    settle(s);
    return status;
}

static int search_wanted(search_t *s)
{
    if (!s->query->most)
        return search_all(s);
    const int status = search_best(s);
    return status || s->query->most == 1 ? status : search_several(s);
}

/* Counts the numbers of segments to try: up to max_segments, and up to what any step needs. */
static int32_t count_cuts(const search_t *s)
{
    uint32_t most = s->query->max_segments;
    int32_t n = 1;
    for (uint32_t i = 0; i < s->graph->n_steps; i++) {
        const uint32_t needed = mc_labels_needed(&s->labels, (int32_t)i);
        most = needed > most ? needed : most;
    }
    while (n < MOST_CUTS && cut_segments(n) <= most)
        n++;
    return n;
}

static uint32_t width_of(const mc_priced_t *graph)
{
    const uint32_t each = MC_MOST_LABELS / graph->n_nodes;
    if (graph->graph.n <= 2)
        return UINT32_MAX;
    return each > MC_LEAST_LABELS ? each : MC_LEAST_LABELS;
}

int mc_search(const mc_priced_t *graph, const mc_planner_query_t *query, mc_ranking_t *ranking)
{
    search_t s = {.graph = graph,
                  .query = query,
                  .ranking = ranking,
                  .limit = INFINITY,
                  .width = width_of(graph)};
    int status = mc_labels_init(&s.labels, graph, query);
    if (status)
        return status;
    s.n_cuts = count_cuts(&s);
    status = search_wanted(&s);
    ranking->exhaustive = s.done == (UINT32_C(1) << s.n_cuts) - 1;
    mc_labels_free(&s.labels);
    return status;
}
