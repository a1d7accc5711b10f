/*
 * Depth first through the graph of placements, in the order of enumeration. For each number of
 * segments, what a path costs is fill + (segments - 1) * max over dimensions of busy. The maximum
 * is no less than any weighted mean, and with a mean in its place the cost is a sum over phases:
 * the cheapest way to the end is then known for every node. A path is left whose cheapest end, by
 * one of the means (each dimension alone, two and two, all), is dearer than what was found.
 */
#include "compose/search.h"

#include "compose/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MEANS = MC_MAX_DIMS * (MC_MAX_DIMS + 1) / 2 + 1 };
enum { MAX_CUTS = 16, NODE_BITS = 3, FIRST_FOUND = 64, MOST_MARKS = 64 };

/* Sums of seconds are compared after rounding of this much; the prices of ends are exact. */
static const double SLACK = 1e-9;

/* The first limit when several are wanted. */
static const double FIRST_EXCESS = 0.02;

/* An algorithm along certain dimensions with the whole vector; a share is a factor on it. */
typedef struct {
    bool known;
    mc_phase_cost_t exact;
    double fixed, per_byte; /* seconds of a segment */
    double busy_fixed[MC_MAX_DIMS], busy_per_byte[MC_MAX_DIMS];
} price_t;

typedef struct {
    mc_ranked_t ranked;
    uint64_t order; /* of enumeration */
} found_t;

typedef struct {
    const mc_mesh_t *mesh;
    const mc_links_t *links;
    int32_t root, n_cuts;
    double bytes;
    mc_graph_t graph;
    int32_t n_means;
    double mean[MAX_MEANS][MC_MAX_DIMS]; /* weights, by position in graph.dim */

    price_t *price;      /* by line, algorithm and which inner dimensions are in use */
    int32_t *known;      /* by node code: index of its to_go, or -1 */
    struct mark **marks; /* by node: the paths that came through it */
    double *to_go;       /* n_cuts * n_means seconds per node */
    int32_t n_nodes, room;

    found_t *found;
    uint32_t n_found, found_room, most;
    uint64_t priced;
    double limit; /* what is dearer need not be found */
    bool left;    /* something was dearer */
    mc_strategy_t strategy;
    int status;
} search_t;

/* A path so far, for each number of segments 1 << c; busy is times (segments - 1). */
typedef struct {
    double fill[MAX_CUTS], busy[MAX_CUTS][MC_MAX_DIMS];
    mc_phase_cost_t exact;
} prefix_t;

/* Where one is wanted: a path that came to a node, so that no dearer one need be followed there. */
typedef struct mark {
    struct mark *next;
    double fill[MAX_CUTS], busy[MAX_CUTS][MC_MAX_DIMS];
} mark_t;

/* One phase in a state: what it adds to a prefix. */
typedef struct {
    const price_t *price;
    mc_ratio_t share;
    double bytes;
} step_t;

static uint32_t segments_of(int32_t c)
{
    return (uint32_t)1 << c;
}

static void placements(const search_t *s, const mc_node_t *node, mc_placement_t state[MC_MAX_DIMS])
{
    for (int32_t d = 0; d < s->mesh->ndims; d++)
        state[d] = s->graph.from;
    for (int32_t i = 0; i < s->graph.n; i++)
        state[s->graph.dim[i]] = (mc_placement_t)node->at[i];
}

static double seconds_per_byte(const mc_term_t *term, const mc_link_t *link)
{
    const mc_term_t bytes_only = {{0, 1}, term->beta, term->gamma};
    return mc_term_seconds(&bytes_only, link, 1);
}

/* Shares come in as a factor, so sharded dimensions are priced as whole. */
static void price_it(const search_t *s, price_t *price, const mc_node_t *node, const mc_hop_t *hop,
                     int32_t algorithm)
{
    mc_placement_t state[MC_MAX_DIMS];
    placements(s, node, state);
    for (int32_t d = 0; d < s->mesh->ndims; d++)
        state[d] = state[d] == MC_SHARD ? MC_REPLICA : state[d];
    price->exact = mc_phase_cost(algorithm, hop->dims, s->mesh, s->links, s->root, state);
    for (int32_t i = 0; i < s->graph.n; i++) {
        const int32_t d = s->graph.dim[i];
        const mc_link_t *const link = &s->links->dim[d];
        const mc_term_t *const once = &price->exact.once.dim[d], *busy = &price->exact.busy.dim[d];
        price->fixed += mc_term_seconds(once, link, 0);
        price->per_byte += seconds_per_byte(once, link);
        price->busy_fixed[i] = mc_term_seconds(busy, link, 0);
        price->busy_per_byte[i] = seconds_per_byte(busy, link);
    }
    price->known = true;
}

static size_t n_prices(const search_t *s)
{
    return (size_t)(s->graph.n * s->graph.n * mc_n_algorithms) << s->graph.n;
}

static step_t step_of(const search_t *s, const mc_node_t *node, const mc_hop_t *hop,
                      int32_t algorithm)
{
    const int32_t last = hop->first + hop->count - 1;
    int32_t line = (hop->first * s->graph.n + last) * mc_n_algorithms + algorithm, used = 0;
    int64_t parts = 1;
    for (int32_t i = 0; i < s->graph.n; i++) {
        const bool outside = i < hop->first || i > last;
        if (outside && node->at[i] == MC_SHARD)
            parts *= s->mesh->dim[s->graph.dim[i]].extent;
        if (i > last && node->at[i] != MC_ROOT)
            used |= 1 << i;
    }
    price_t *const price = &s->price[((size_t)line << s->graph.n) + (size_t)used];
    if (!price->known)
        price_it(s, price, node, hop, algorithm);
    return (step_t){price, mc_ratio(1, parts), s->bytes / (double)parts};
}

static double step_once(const step_t *step, int32_t c)
{
    return step->price->fixed + step->price->per_byte * step->bytes / segments_of(c);
}

static double step_busy(const step_t *step, int32_t c, int32_t i)
{
    const uint32_t segments = segments_of(c);
    return (segments - 1) *
           (step->price->busy_fixed[i] + step->price->busy_per_byte[i] * step->bytes / segments);
}

/* Where a dimension is, and whether it has been in the other of root and shard. */
static uint32_t code_of(const search_t *s, const mc_node_t *node)
{
    uint32_t code = 0;
    for (int32_t i = 0; i < s->graph.n; i++) {
        const uint32_t other = node->at[i] == MC_ROOT ? MC_SHARD : MC_ROOT;
        const bool turned = node->at[i] != MC_REPLICA && (node->been[i] & 1u << other);
        code = code << NODE_BITS | (uint32_t)node->at[i] << 1 | turned;
    }
    return code;
}

static int32_t add_node(search_t *s, uint32_t code)
{
    const int32_t per_node = s->n_cuts * s->n_means;
    if (s->n_nodes == s->room) {
        const int32_t room = s->room ? 2 * s->room : FIRST_FOUND;
        double *const to_go = realloc(s->to_go, sizeof(double) * (size_t)room * (size_t)per_node);
        if (!to_go) {
            s->status = mc_fail_memory("the planner's table of nodes");
            return -1;
        }
        s->to_go = to_go;
        s->room = room;
    }
    s->known[code] = s->n_nodes;
    return s->n_nodes++;
}

static double *to_go_of(const search_t *s, int32_t id)
{
    return s->to_go + (size_t)id * (size_t)(s->n_cuts * s->n_means);
}

static double weighted(const search_t *s, int32_t m, const double busy[MC_MAX_DIMS])
{
    double sum = 0;
    for (int32_t i = 0; i < s->graph.n; i++)
        sum += s->mean[m][i] * busy[i];
    return sum;
}

static void improve(const search_t *s, double *best, const double *rest, const step_t *step)
{
    for (int32_t c = 0; c < s->n_cuts; c++) {
        const double once = step_once(step, c);
        double busy[MC_MAX_DIMS];
        for (int32_t i = 0; i < s->graph.n; i++)
            busy[i] = step_busy(step, c, i);
        for (int32_t m = 0; m < s->n_means; m++) {
            const int32_t at = c * s->n_means + m;
            const double all = once + weighted(s, m, busy) + rest[at];
            best[at] = all < best[at] ? all : best[at];
        }
    }
}

/* Fills in to_go for `node` and all after it; its index, or -1. */
static int32_t measure(search_t *s, const mc_node_t *node)
{
    const uint32_t code = code_of(s, node);
    double best[MAX_CUTS * MAX_MEANS];
    mc_hop_t hop[MC_MAX_HOPS];
    if (s->known[code] >= 0)
        return s->known[code];
    const bool ended = mc_graph_ended(&s->graph, node);
    for (int32_t at = 0; at < s->n_cuts * s->n_means; at++)
        best[at] = ended ? 0 : INFINITY;
    const int32_t n = mc_graph_hops(&s->graph, node, hop);
    for (int32_t h = 0; h < n; h++) {
        const mc_node_t next = mc_graph_after(node, &hop[h]);
        const int32_t id = measure(s, &next);
        if (id < 0)
            return -1;
        const mc_choices_t *const choices = &s->graph.choices[hop[h].collective];
        for (int32_t a = 0; a < choices->n; a++) {
            const step_t step = step_of(s, node, &hop[h], choices->index[a]);
            improve(s, best, to_go_of(s, id), &step);
        }
    }
    const int32_t id = add_node(s, code);
    for (int32_t at = 0; id >= 0 && at < s->n_cuts * s->n_means; at++)
        to_go_of(s, id)[at] = best[at];
    return id;
}

static int by_price(const void *left, const void *right)
{
    const found_t *const a = left, *const b = right;
    if (a->ranked.seconds != b->ranked.seconds)
        return a->ranked.seconds < b->ranked.seconds ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Sorts, and keeps the cheapest `most`. */
static void settle(search_t *s)
{
    qsort(s->found, s->n_found, sizeof *s->found, by_price);
    if (s->most && s->n_found >= s->most) {
        s->n_found = s->most;
        s->limit = s->found[s->most - 1].ranked.seconds;
    }
}

static void keep(search_t *s, double seconds, uint32_t segments)
{
    if (s->n_found == s->found_room) {
        const uint32_t room = s->found_room ? 2 * s->found_room : FIRST_FOUND;
        found_t *const found = realloc(s->found, sizeof *found * room);
        if (!found) {
            s->status = mc_fail_memory("the planner's list of strategies");
            return;
        }
        s->found = found;
        s->found_room = room;
    }
    found_t *const entry = &s->found[s->n_found++];
    entry->ranked.strategy = s->strategy;
    entry->ranked.strategy.segments = segments;
    entry->ranked.seconds = seconds;
    entry->order = s->priced;
    if (s->most && (s->most == 1 || s->n_found >= 2 * s->most + FIRST_FOUND))
        settle(s);
}

static void price_end(search_t *s, const prefix_t *prefix)
{
    double best = INFINITY;
    uint32_t segments = 1;
    for (int32_t c = 0; c < s->n_cuts; c++) {
        const double seconds =
            mc_phase_cost_seconds(&prefix->exact, s->links, segments_of(c), s->bytes);
        if (seconds < best) {
            best = seconds;
            segments = segments_of(c);
        }
    }
    s->priced++;
    if (best <= s->limit)
        keep(s, best, segments);
}

/* At least what any end of the prefix costs with 1 << c segments. */
static double bound_of(const search_t *s, const prefix_t *prefix, const double *to_go, int32_t c)
{
    double bound = 0;
    for (int32_t m = 0; m < s->n_means; m++) {
        const double all = weighted(s, m, prefix->busy[c]) + to_go[c * s->n_means + m];
        bound = all > bound ? all : bound;
    }
    return prefix->fill[c] + bound;
}

static void extend(const search_t *s, const prefix_t *prefix, const step_t *step, prefix_t *longer)
{
    for (int32_t c = 0; c < s->n_cuts; c++) {
        longer->fill[c] = prefix->fill[c] + step_once(step, c);
        for (int32_t i = 0; i < s->graph.n; i++)
            longer->busy[c][i] = prefix->busy[c][i] + step_busy(step, c, i);
    }
}

static void extend_exact(const prefix_t *prefix, const step_t *step, prefix_t *longer)
{
    const mc_cost_t once = mc_cost_share(&step->price->exact.once, step->share);
    const mc_cost_t busy = mc_cost_share(&step->price->exact.busy, step->share);
    longer->exact.once = mc_cost_add(&prefix->exact.once, &once);
    longer->exact.busy = mc_cost_add(&prefix->exact.busy, &busy);
}

static bool hopeless(const search_t *s, const prefix_t *prefix, const double *to_go)
{
    for (int32_t c = 0; c < s->n_cuts; c++)
        if (bound_of(s, prefix, to_go, c) * (1 - SLACK) <= s->limit)
            return false;
    return true;
}

static bool no_dearer(const search_t *s, const mark_t *mark, const prefix_t *prefix)
{
    for (int32_t c = 0; c < s->n_cuts; c++) {
        if (mark->fill[c] > prefix->fill[c])
            return false;
        for (int32_t i = 0; i < s->graph.n; i++)
            if (mark->busy[c][i] > prefix->busy[c][i])
                return false;
    }
    return true;
}

/* Was there an earlier path to this node that is no dearer, whatever follows? Ties are the earlier
 * one's. Else this path is marked. */
static bool outdone(search_t *s, int32_t id, const prefix_t *prefix)
{
    int32_t n = 0;
    for (const mark_t *mark = s->marks[id]; mark; mark = mark->next, n++)
        if (no_dearer(s, mark, prefix))
            return true;
    mark_t *const mark = n < MOST_MARKS ? malloc(sizeof *mark) : NULL;
    if (mark) { /* without one the search only takes longer */
        memcpy(mark->fill, prefix->fill, sizeof mark->fill);
        memcpy(mark->busy, prefix->busy, sizeof mark->busy);
        mark->next = s->marks[id];
        s->marks[id] = mark;
    }
    return false;
}

static void explore(search_t *s, const mc_node_t *node, const prefix_t *prefix)
{
    mc_hop_t hop[MC_MAX_HOPS];
    prefix_t longer;
    if (mc_graph_ended(&s->graph, node)) {
        price_end(s, prefix);
        return;
    }
    const int32_t n = mc_graph_hops(&s->graph, node, hop), at = s->strategy.n_phases++;
    for (int32_t h = 0; h < n; h++) {
        const mc_node_t next = mc_graph_after(node, &hop[h]);
        const int32_t id = s->known[code_of(s, &next)];
        const double *const to_go = to_go_of(s, id);
        const mc_choices_t *const choices = &s->graph.choices[hop[h].collective];
        for (int32_t a = 0; a < choices->n && !s->status; a++) {
            const step_t step = step_of(s, node, &hop[h], choices->index[a]);
            extend(s, prefix, &step, &longer);
            if (hopeless(s, &longer, to_go)) {
                s->left = true;
                continue;
            }
            if (s->most == 1 && outdone(s, id, &longer))
                continue;
            extend_exact(prefix, &step, &longer);
            s->strategy.phase[at] = (mc_phase_t){choices->index[a], hop[h].dims};
            explore(s, &next, &longer);
        }
    }
    s->strategy.n_phases = at;
}

/* Seconds of a good strategy with 1 << c segments: at each node the step with the lowest bound. */
static double dive(search_t *s, const mc_node_t *start, const prefix_t *empty, int32_t c)
{
    mc_node_t node = *start;
    prefix_t prefix = *empty, longer, best = *empty;
    mc_hop_t hop[MC_MAX_HOPS];
    double bound = 0;
    while (!mc_graph_ended(&s->graph, &node)) {
        const int32_t n = mc_graph_hops(&s->graph, &node, hop);
        mc_node_t chosen = node;
        bound = INFINITY;
        for (int32_t h = 0; h < n; h++) {
            const mc_node_t next = mc_graph_after(&node, &hop[h]);
            const double *const to_go = to_go_of(s, s->known[code_of(s, &next)]);
            const mc_choices_t *const choices = &s->graph.choices[hop[h].collective];
            for (int32_t a = 0; a < choices->n; a++) {
                const step_t step = step_of(s, &node, &hop[h], choices->index[a]);
                extend(s, &prefix, &step, &longer);
                const double end = bound_of(s, &longer, to_go, c);
                if (end < bound) {
                    bound = end;
                    best = longer;
                    chosen = next;
                }
            }
        }
        node = chosen;
        prefix = best;
    }
    return bound;
}

static void add_mean(search_t *s, int32_t first, int32_t second)
{
    double *const mean = s->mean[s->n_means++];
    mean[first] += 0.5;
    mean[second] += 0.5;
}

static void add_means(search_t *s)
{
    for (int32_t i = 0; i < s->graph.n; i++)
        for (int32_t j = i; j < s->graph.n; j++)
            add_mean(s, i, j);
    for (int32_t i = 0; i < s->graph.n && s->graph.n > 2; i++)
        s->mean[s->n_means][i] = 1.0 / s->graph.n;
    s->n_means += s->graph.n > 2;
}

static int prepare(search_t *s)
{
    const size_t codes = (size_t)1 << (NODE_BITS * s->graph.n);
    s->price = calloc(n_prices(s), sizeof *s->price);
    s->known = malloc(codes * sizeof *s->known);
    if (!s->price || !s->known)
        return mc_fail_memory("the planner's tables");
    for (size_t i = 0; i < codes; i++)
        s->known[i] = -1;
    return MESHCOLL_OK;
}

static void clear_marks(search_t *s)
{
    for (int32_t id = 0; s->marks && id < s->n_nodes; id++)
        while (s->marks[id]) {
            mark_t *const mark = s->marks[id];
            s->marks[id] = mark->next;
            free(mark);
        }
}

/* Within a limit above what one good strategy costs; a wider one until enough are found. */
static void run(search_t *s)
{
    const mc_node_t start = mc_graph_start(&s->graph);
    const prefix_t empty = {.exact = {mc_cost_zero(), mc_cost_zero()}};
    if (measure(s, &start) < 0)
        return;
    s->marks = calloc((size_t)s->n_nodes, sizeof(mark_t *));
    if (!s->marks) {
        s->status = mc_fail_memory("the planner's table of nodes");
        return;
    }
    double good = INFINITY, excess = s->most == 1 ? SLACK : FIRST_EXCESS;
    for (int32_t c = 0; s->most && c < s->n_cuts; c++) {
        const double seconds = dive(s, &start, &empty, c);
        good = seconds < good ? seconds : good;
    }
    do {
        s->n_found = 0;
        s->priced = 0;
        s->left = false;
        s->limit = good > 0 || excess == SLACK ? good * (1 + excess) : INFINITY;
        clear_marks(s);
        explore(s, &start, &empty);
        excess *= 4;
    } while (!s->status && s->left && s->n_found < s->most);
    settle(s);
}

static int hand_out(const search_t *s, mc_ranked_t **ranked, uint32_t *n, uint32_t *considered)
{
    mc_ranked_t *const list = malloc(sizeof *list * (s->n_found ? s->n_found : 1));
    if (!list)
        return mc_fail_memory("the planner's list of strategies");
    for (uint32_t i = 0; i < s->n_found; i++)
        list[i] = s->found[i].ranked;
    *ranked = list;
    *n = s->n_found;
    *considered = s->priced > UINT32_MAX ? UINT32_MAX : (uint32_t)s->priced;
    return MESHCOLL_OK;
}

static void release(search_t *s)
{
    clear_marks(s);
    free(s->marks);
    free(s->price);
    free(s->known);
    free(s->to_go);
    free(s->found);
}

int mc_search(meshcoll_collective_t collective, const mc_mesh_t *mesh, const mc_links_t *links,
              const mc_planner_query_t *query, uint32_t most, mc_ranked_t **ranked, uint32_t *n,
              uint32_t *considered)
{
    search_t s = {.mesh = mesh, .links = links, .bytes = query->bytes, .most = most};
    s.root = mc_moves[collective].rooted ? query->root : 0;
    s.graph = mc_graph(collective, mesh, query->in_order);
    s.strategy.collective = collective;
    add_means(&s);
    for (s.n_cuts = 1; s.n_cuts < MAX_CUTS && segments_of(s.n_cuts) <= query->max_segments;)
        s.n_cuts++;
    s.status = prepare(&s);
    if (!s.status)
        run(&s);
    if (!s.status)
        s.status = hand_out(&s, ranked, n, considered);
    release(&s);
    return s.status;
}
