/*
 * Finds the cheapest strategies. In each number of segments, a cut, the labels of the start (labels.h) are
 * the strategies that no other one dominates; those within the limit are priced exactly. The first pass has
 * one label per state and gives the first incumbent, whose cost is the limit. The second pass has all labels,
 * and visits the cut with the lowest bound first.
 *
 * If several strategies are wanted, paths are followed from the start in the order of enumeration. A path is
 * dropped when no label continues it within the limit.
 */
#include "compose/planner/search.h"

#include "compose/planner/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CUTS = 16, FIRST_FOUND = 64 };

/* If several strategies are wanted, the first limit is the incumbent's cost plus this part of it. */
static const double FIRST_EXCESS = 0.02;

/* A strategy, priced exactly. */
typedef struct {
    double seconds;
    uint32_t segments;
    int32_t n_phases;
    uint64_t path[MC_MAX_PHASES]; /* mc_label_phase */
} found_t;

typedef struct {
    const mc_links_t *links;
    bool bursts;     /* of `links` */
    mc_links_t left; /* links with the bursts of one path taken off */
    double bytes;
    mc_priced_t *graph;
    mc_ways_t ways;
    int32_t n_cuts;                /* numbers of segments */
    double bound[MOST_CUTS];       /* by cut: lower bound of its strategies' seconds */
    mc_labels_t labels[MOST_CUTS]; /* only the first is used if one strategy is wanted */

    uint32_t most;     /* strategies wanted; 0: all */
    double limit;      /* seconds: strategies above it are not wanted */
    bool left_out;     /* a path was dropped as above the limit */
    uint64_t n_priced; /* exactly */
    uint64_t path[MC_MAX_PHASES];
    /* of the path's first phases: load in each cut, segments needed, exact cost */
    double *load;
    uint32_t needed[MC_MAX_PHASES + 1];
    mc_phase_cost_t exact[MC_MAX_PHASES + 1];
    int32_t n_exact; /* phases for which `exact` is up to date */
    found_t *found;
    uint32_t n_found, room_found;
    int status;
} search_t;

static uint32_t segments_of(int32_t c)
{
    return UINT32_C(1) << c;
}

static int32_t start_of(const search_t *s)
{
    return s->graph->n_nodes - 1;
}

static double wide_limit(const search_t *s)
{
    return s->limit * (1 + 2 * MC_SLACK);
}

/* Each state's share of MC_MOST_LABELS. */
static int32_t labels_a_state(const search_t *s)
{
    const int32_t n = MC_MOST_LABELS / s->graph->n_nodes;
    return n > 0 ? n : 1;
}

/* What was found ------------------------------------------------------------------------------- */

static int by_price(const void *left, const void *right)
{
    const found_t *const a = left, *const b = right;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    /* no path is the beginning of another */
    for (int32_t i = 0; i < a->n_phases && i < b->n_phases; i++)
        if (a->path[i] != b->path[i])
            return a->path[i] < b->path[i] ? -1 : 1;
    return a->segments < b->segments ? -1 : a->segments > b->segments;
}

/* Sorts what was found, drops all but the `most` cheapest, and lowers the limit to them. */
static void settle(search_t *s)
{
    if (s->n_found > 1)
        qsort(s->found, s->n_found, sizeof *s->found, by_price);
    if (s->most && s->n_found >= s->most) {
        s->n_found = s->most;
        s->limit = s->found[s->most - 1].seconds;
    }
}

static void keep(search_t *s, double seconds, uint32_t segments, const uint64_t *path,
                 int32_t n_phases)
{
    if (s->n_found == s->room_found) {
        const uint32_t room = s->room_found ? 2 * s->room_found : FIRST_FOUND;
        found_t *const found = realloc(s->found, sizeof *found * room);
        if (!found) {
            s->status = mc_fail_memory("the planner's list of strategies");
            return;
        }
        s->found = found;
        s->room_found = room;
    }
    found_t *const entry = &s->found[s->n_found++];
    *entry = (found_t){.seconds = seconds, .segments = segments, .n_phases = n_phases};
    memcpy(entry->path, path, sizeof *path * (size_t)n_phases);
    if (s->most && (s->most == 1 || s->n_found >= 2 * s->most + FIRST_FOUND))
        settle(s);
}

static mc_phase_cost_t exact_longer(search_t *s, const mc_phase_cost_t *before, uint64_t phase)
{
    const mc_priced_term_t *term = NULL;
    const int32_t n = mc_priced_exact(s->graph, mc_label_step(phase), &term);
    mc_phase_cost_t longer = *before;
    if (n < 0)
        s->status = mc_fail_memory("the planner's exact costs");
    for (int32_t i = 0; i < n; i++) {
        mc_term_t *const once = &longer.once.dim[term[i].dim];
        mc_term_t *const busy = &longer.busy.dim[term[i].dim];
        *once = mc_term_add(once, &term[i].once);
        *busy = mc_term_add(busy, &term[i].busy);
    }
    return longer;
}

/* The exact cost of the path's first phases. Sums of phases that the path shares with the last one are
 * reused. */
static const mc_phase_cost_t *exact_cost(search_t *s, int32_t n_phases)
{
    for (; s->n_exact < n_phases; s->n_exact++)
        s->exact[s->n_exact + 1] = exact_longer(s, &s->exact[s->n_exact], s->path[s->n_exact]);
    return &s->exact[n_phases];
}

static double exact_seconds(search_t *s, const mc_phase_cost_t *cost, uint32_t segments)
{
    if (!s->bursts)
        return mc_phase_cost_seconds(cost, s->links, segments, s->bytes);
    mc_links_carry(s->links, &cost->busy, s->bytes, &s->left);
    return mc_phase_cost_seconds(cost, &s->left, segments, s->bytes);
}

/* The cheapest --------------------------------------------------------------------------------- */

/* Prices the strategy of a label of the start, unless it has more segments than allowed. */
static void price_label(search_t *s, const mc_labels_t *l, int32_t label)
{
    int32_t n = 0;
    if (l->segments > s->ways.max_segments && !l->label[label].needs)
        return;
    for (; l->label[label].next >= 0; label = l->label[label].next)
        s->path[n++] = l->label[label].phase;
    s->n_exact = 0;
    const double seconds = exact_seconds(s, exact_cost(s, n), l->segments);
    s->n_priced++;
    if (seconds <= s->limit)
        keep(s, seconds, l->segments, s->path, n);
}

static double label_price(const search_t *s, const mc_labels_t *l, int32_t label)
{
    const double *const load = mc_label_load(&s->ways, l, label);
    return mc_load_price(&s->ways.kind, load, load);
}

static void search_cut(search_t *s, int32_t c, int32_t most)
{
    mc_labels_t *const l = &s->labels[0];
    s->bound[c] = mc_ways_open(&s->ways, l, segments_of(c), s->limit);
    if (s->bound[c] == INFINITY || s->bound[c] > wide_limit(s))
        return;
    s->status = mc_labels_find(&s->ways, l, most);
    for (int32_t i = l->first[start_of(s)]; i < l->n && !s->status; i++)
        if (label_price(s, l, i) <= wide_limit(s))
            price_label(s, l, i);
}

static void find_good(search_t *s)
{
    for (int32_t c = 0; c < s->n_cuts && !s->status; c++)
        search_cut(s, c, 1);
}

/* The cut with the lowest bound of those not searched yet, or -1 if none can beat the limit. */
static int32_t next_cut(const search_t *s)
{
    int32_t next = 0;
    for (int32_t c = 1; c < s->n_cuts; c++)
        next = s->bound[c] < s->bound[next] ? c : next;
    return s->bound[next] < INFINITY && s->bound[next] <= wide_limit(s) ? next : -1;
}

static void find_best(search_t *s)
{
    find_good(s);
    for (int32_t c; !s->status && (c = next_cut(s)) >= 0;) {
        search_cut(s, c, labels_a_state(s));
        s->bound[c] = INFINITY;
    }
}

/* Several --------------------------------------------------------------------------------------- */

static double *load_at(const search_t *s, int32_t n_phases, int32_t c)
{
    return s->load + (size_t)(n_phases * s->n_cuts + c) * (size_t)s->ways.width;
}

static bool leads_on(const search_t *s, int32_t n_phases, int32_t node, int32_t c)
{
    const mc_labels_t *const l = &s->labels[c];
    const double *const load = load_at(s, n_phases, c);
    double sum[MC_MOST_PARTS];
    for (int32_t i = l->first[node]; i < l->first[node + 1]; i++) {
        const double *const after = mc_label_load(&s->ways, l, i);
        for (int32_t k = 0; k < s->ways.kind.n; k++)
            sum[k] = load[k] + after[k];
        if (mc_load_price(&s->ways.kind, sum, sum) <= wide_limit(s))
            return true;
    }
    return false;
}

/* Is every strategy that begins with the path's first phases, which lead to `node`, above the limit? */
static bool hopeless(const search_t *s, int32_t n_phases, int32_t node)
{
    if (s->limit == INFINITY)
        return false;
    for (int32_t c = 0; c < s->n_cuts; c++)
        if (s->needed[n_phases] <= segments_of(c) && leads_on(s, n_phases, node, c))
            return false;
    return true;
}

/* May a strategy that needs `needed` segments have this number? */
static bool is_allowed(const search_t *s, uint32_t needed, uint32_t segments)
{
    return segments >= needed && (segments <= s->ways.max_segments || segments == needed);
}

static void price_end(search_t *s, int32_t n_phases)
{
    const mc_phase_cost_t *const cost = exact_cost(s, n_phases);
    double best = INFINITY;
    uint32_t segments = 1;
    for (int32_t c = 0; c < s->n_cuts; c++) {
        if (!is_allowed(s, s->needed[n_phases], segments_of(c)))
            continue;
        const double seconds = exact_seconds(s, cost, segments_of(c));
        if (seconds < best) {
            best = seconds;
            segments = segments_of(c);
        }
    }
    s->n_priced++;
    if (best <= s->limit)
        keep(s, best, segments, s->path, n_phases);
}

static void explore(search_t *s, int32_t node, int32_t n_phases);

static void explore_step(search_t *s, int32_t h, int32_t step, int32_t n_phases)
{
    const int32_t next = s->graph->hop[h].next;
    const uint32_t needed = mc_ways_needed(&s->ways, step);
    for (int32_t c = 0; c < s->n_cuts && s->limit < INFINITY; c++) {
        const double *const by = mc_label_step_load(&s->ways, &s->labels[c], step);
        const double *const load = load_at(s, n_phases, c);
        double *const longer = load_at(s, n_phases + 1, c);
        for (int32_t k = 0; k < s->ways.kind.n; k++)
            longer[k] = load[k] + by[k];
    }
    s->needed[n_phases + 1] = needed > s->needed[n_phases] ? needed : s->needed[n_phases];
    if (hopeless(s, n_phases + 1, next)) {
        s->left_out = true;
        return;
    }
    s->path[n_phases] = mc_label_phase(h, step);
    s->n_exact = s->n_exact < n_phases ? s->n_exact : n_phases;
    explore(s, next, n_phases + 1);
}

static void explore(search_t *s, int32_t node, int32_t n_phases)
{
    const int32_t first = s->graph->first_hop[node], end = s->graph->first_hop[node + 1];
    if (first == end)
        price_end(s, n_phases);
    for (int32_t h = first; h < end; h++) {
        const mc_priced_group_t group = s->graph->group[s->graph->hop[h].group];
        for (int32_t i = group.first; i < group.first + group.n && !s->status; i++)
            explore_step(s, h, i, n_phases);
    }
}

static void explore_all(search_t *s)
{
    for (int32_t c = 0; c < s->n_cuts && s->limit < INFINITY && !s->status; c++) {
        mc_ways_open(&s->ways, &s->labels[c], segments_of(c), s->limit);
        s->status = mc_labels_find(&s->ways, &s->labels[c], labels_a_state(s));
    }
    s->n_found = 0;
    s->n_priced = 0;
    s->n_exact = 0;
    s->left_out = false;
    if (!s->status)
        explore(s, start_of(s), 0);
}

/* Explores within a limit somewhat above the incumbent's cost, and raises it until enough are found. */
static void find_several(search_t *s, uint32_t most)
{
    double excess = FIRST_EXCESS;
    const size_t n = (size_t)(MC_MAX_PHASES + 1) * (size_t)(s->n_cuts * s->ways.width);
    s->load = calloc(n, sizeof *s->load);
    if (!s->load)
        s->status = mc_fail_memory("the planner's paths");
    if (most && !s->status)
        find_good(s);
    const double good = most ? s->limit : 0;
    s->most = most;
    while (!s->status) {
        s->limit = good > 0 ? good * (1 + excess) : INFINITY;
        explore_all(s);
        if (!s->left_out || s->n_found >= most)
            break;
        excess *= 4;
    }
    settle(s);
}

static int hand_out(const search_t *s, meshcoll_collective_t collective, mc_ranked_t **ranked,
                    uint32_t *n, uint32_t *considered)
{
    mc_ranked_t *const list = malloc(sizeof *list * (s->n_found ? s->n_found : 1));
    if (!list)
        return mc_fail_memory("the planner's list of strategies");
    for (uint32_t i = 0; i < s->n_found; i++) {
        const found_t *const found = &s->found[i];
        mc_strategy_t strategy = {
            .collective = collective, .segments = found->segments, .n_phases = found->n_phases};
        for (int32_t k = 0; k < found->n_phases; k++)
            strategy.phase[k] = s->graph->step[mc_label_step(found->path[k])].phase;
        list[i] = (mc_ranked_t){strategy, found->seconds};
    }
    *ranked = list;
    *n = s->n_found;
    *considered = s->n_priced > UINT32_MAX ? UINT32_MAX : (uint32_t)s->n_priced;
    return MESHCOLL_OK;
}

/* Numbers of segments to search: up to max_segments, and up to what any step needs. */
static void count_cuts(search_t *s)
{
    uint32_t most = s->ways.max_segments;
    for (int32_t i = 0; i < s->graph->n_steps; i++) {
        const uint32_t needed = mc_ways_needed(&s->ways, i);
        most = needed > most ? needed : most;
    }
    for (s->n_cuts = 1; s->n_cuts < MOST_CUTS && segments_of(s->n_cuts) <= most;)
        s->n_cuts++;
}

static void prepare(search_t *s, const mc_planner_query_t *query, uint32_t most)
{
    s->status = mc_ways_init(&s->ways, s->graph, s->links, query, most != 1);
    if (s->status)
        return;
    count_cuts(s);
    for (int32_t c = 0; c < (most == 1 ? 1 : s->n_cuts) && !s->status; c++)
        s->status = mc_labels_init(&s->labels[c], &s->ways);
}

static void release(search_t *s)
{
    for (int32_t c = 0; c < s->n_cuts; c++)
        mc_labels_free(&s->labels[c]);
    mc_ways_free(&s->ways);
    free(s->load);
    free(s->found);
}

int mc_search(mc_priced_t *graph, meshcoll_collective_t collective, const mc_links_t *links,
              const mc_planner_query_t *query, uint32_t most, mc_ranked_t **ranked, uint32_t *n,
              uint32_t *considered)
{
    search_t s = {.graph = graph,
                  .links = links,
                  .bursts = mc_links_burst(links),
                  .left = *links,
                  .bytes = query->bytes,
                  .most = 1,
                  .limit = INFINITY,
                  .needed = {1}};
    s.exact[0] = (mc_phase_cost_t){mc_cost_zero(), mc_cost_zero()};
    prepare(&s, query, most);
    if (!s.status && most == 1)
        find_best(&s);
    else if (!s.status)
        find_several(&s, most);
    if (!s.status)
        s.status = hand_out(&s, collective, ranked, n, considered);
    release(&s);
    return s.status;
}
