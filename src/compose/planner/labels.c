#include "compose/planner/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 256, MOST_WIDTH = MC_MOST_PARTS + MC_MOST_MEANS, ANY_KIND = -1 };

/* Loads are rounded to this fraction of the limit (as a power of two). Their sums are then exact, so equal
 * loads compare equal. */
static const double QUANTUM = 0x1p-40;

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double *group_of(const mc_ways_t *w, int32_t group)
{
    return w->group + (size_t)group * (size_t)w->width;
}

static double *before_of(const mc_ways_t *w, int32_t kind, int32_t node)
{
    const size_t at = (size_t)(kind == ANY_KIND ? 0 : kind) * (size_t)w->graph->n_nodes;
    return w->before + (at + (size_t)node) * (size_t)w->width;
}

/* The limit with the slack of rounding. */
static double wide_limit(const mc_ways_t *w)
{
    return w->limit * (1 + 2 * MC_SLACK);
}

/* Steps ------------------------------------------------------------------------------------------ */

/* Rounds to a multiple of the quantum. A number too large for this is far above the limit, and stays. */
static double rounded(const mc_ways_t *w, double seconds)
{
    const double carry = w->quantum * 0x1.8p52;
    return w->quantum > 0 && seconds < carry / 4 ? seconds + carry - carry : seconds;
}

/* Does load `a` dominate load `b`, whatever precedes them? Of strategies of equal cost the first one in the
 * order of enumeration is wanted, so a later one must be cheaper by more than rounding. */
static bool replaces(const mc_ways_t *w, const double *a, bool earlier, const double *b)
{
    return a[0] <= b[0] && mc_load_cheaper(&w->kind, a, b, earlier ? 0 : w->limit * MC_SLACK);
}

static bool is_needed(const mc_ways_t *w, const mc_labels_t *l, mc_priced_group_t group, int32_t i)
{
    if (mc_ways_needed(w, i) > l->segments)
        return false;
    for (int32_t k = group.first; k < group.first + group.n && !w->wants_all; k++)
        if (k != i && mc_ways_needed(w, k) == mc_ways_needed(w, i) &&
            replaces(w, mc_label_step_load(w, l, k), k < i, mc_label_step_load(w, l, i)))
            return false;
    return true;
}

static void sift_steps(mc_ways_t *w, const mc_labels_t *l)
{
    for (int32_t g = 0; g < w->graph->n_groups; g++) {
        const mc_priced_group_t group = w->graph->group[g];
        int32_t n = 0;
        for (int32_t i = group.first; i < group.first + group.n; i++)
            if (is_needed(w, l, group, i))
                w->kept[group.first + n++] = i;
        w->n_kept[g] = n;
    }
}

/* The least of parts [first, end) over the steps of each group. */
static void find_least(mc_ways_t *w, const mc_labels_t *l, int32_t first, int32_t end)
{
    for (int32_t g = 0; g < w->graph->n_groups; g++) {
        const int32_t *const kept = w->kept + w->graph->group[g].first;
        double *const least = group_of(w, g);
        for (int32_t k = first; k < end; k++)
            least[k] = INFINITY;
        for (int32_t i = 0; i < w->n_kept[g]; i++)
            for (int32_t k = first; k < end; k++)
                least[k] = lesser(least[k], mc_label_step_load(w, l, kept[i])[k]);
    }
}

static void load_steps(mc_ways_t *w, mc_labels_t *l)
{
    for (int32_t i = 0; i < w->graph->n_steps; i++) {
        double *const load = mc_label_step_load(w, l, i);
        mc_load_of(&w->kind, w->graph, &w->graph->step[i], w->bytes, l->segments, load);
        for (int32_t k = 0; k < w->kind.n; k++)
            load[k] = rounded(w, load[k]);
    }
    sift_steps(w, l);
    find_least(w, l, 0, w->kind.n);
}

/* Computes the means of all steps. `least`: the least load of any strategy. */
static void add_means(mc_ways_t *w, mc_labels_t *l, const double *least)
{
    for (int32_t i = 0; i < w->graph->n_steps; i++) {
        double *const load = mc_label_step_load(w, l, i);
        mc_load_means(&w->kind, load, least, l->segments, load + w->kind.n);
    }
    mc_load_offsets(&w->kind, l->segments, w->offset);
    find_least(w, l, w->kind.n, w->width);
}

/* Beginnings ------------------------------------------------------------------------------------- */

/* Lowers parts [first, end) of `least` to those of from + by, if these are less. */
static void lower(double *restrict least, const double *restrict from, const double *restrict by,
                  int32_t first, int32_t end)
{
    for (int32_t k = first; k < end; k++)
        least[k] = lesser(least[k], from[k] + by[k]);
}

/* Beginnings of one phase, of this kind. */
static void begin(const mc_ways_t *w, const mc_labels_t *l, int32_t kind, int32_t first,
                  int32_t end)
{
    const mc_priced_t *const graph = w->graph;
    const int32_t start = graph->n_nodes - 1;
    for (int32_t h = graph->first_hop[start]; h < graph->first_hop[start + 1]; h++) {
        const mc_priced_hop_t hop = graph->hop[h];
        const int32_t *const kept = w->kept + graph->group[hop.group].first;
        for (int32_t i = 0; i < w->n_kept[hop.group]; i++)
            if (kind == ANY_KIND || w->wire[kept[i]] == kind)
                lower(before_of(w, kind, hop.next), before_of(w, kind, start),
                      mc_label_step_load(w, l, kept[i]), first, end);
    }
}

/* The least of parts [first, end) over all beginnings of this kind, by node, and over all whole strategies:
 * *at_end. Hops lead to nodes with lower indices, so nodes are visited in descending order. */
static void find_before(const mc_ways_t *w, const mc_labels_t *l, int32_t kind, int32_t first,
                        int32_t end, double *at_end)
{
    static const double none[MOST_WIDTH];
    const mc_priced_t *const graph = w->graph;
    for (int32_t node = 0; node < graph->n_nodes; node++)
        for (int32_t k = first; k < end; k++)
            before_of(w, kind, node)[k] = INFINITY;
    for (int32_t k = first; k < end; k++)
        before_of(w, kind, graph->n_nodes - 1)[k] = k < w->kind.n ? 0 : w->offset[k - w->kind.n];
    for (int32_t k = first; k < end; k++)
        at_end[k] = INFINITY;
    begin(w, l, kind, first, end);
    for (int32_t node = graph->n_nodes - 2; node >= 0; node--) {
        const double *const from = before_of(w, kind, node);
        if (from[first] == INFINITY)
            continue;
        if (graph->first_hop[node] == graph->first_hop[node + 1])
            lower(at_end, from, none, first, end);
        for (int32_t h = graph->first_hop[node]; h < graph->first_hop[node + 1]; h++)
            lower(before_of(w, kind, graph->hop[h].next), from, group_of(w, graph->hop[h].group),
                  first, end);
    }
}

/* A lower bound of the seconds of a strategy whose parts and means are at least these; INFINITY if there is
 * none. */
static double seconds_of(const mc_ways_t *w, const double *sum)
{
    if (sum[0] == INFINITY)
        return INFINITY;
    double most = mc_load_price(&w->kind, sum, sum);
    for (int32_t k = w->kind.n; k < w->width; k++)
        most = larger(most, sum[k]);
    return most;
}

static double power_of_two(double seconds)
{
    int exponent;
    if (!(seconds > 0 && seconds < INFINITY))
        return 0;
    frexp(seconds, &exponent);
    return ldexp(1, exponent);
}

double mc_ways_open(mc_ways_t *w, mc_labels_t *l, uint32_t segments, double limit)
{
    double at_end[MOST_WIDTH], bound = INFINITY;
    w->limit = limit;
    w->quantum = power_of_two(limit) * QUANTUM;
    l->segments = segments;
    load_steps(w, l);
    find_before(w, l, ANY_KIND, 0, w->kind.n, at_end);
    if (at_end[0] == INFINITY)
        return INFINITY;
    add_means(w, l, at_end);
    find_before(w, l, ANY_KIND, w->kind.n, w->width, at_end);
    const double by_any = seconds_of(w, at_end);
    if (w->kind.n_wires == 1 || by_any > wide_limit(w))
        return by_any;
    for (int32_t kind = 0; kind < w->kind.n_wires; kind++) {
        find_before(w, l, kind, 0, w->width, at_end);
        bound = lesser(bound, seconds_of(w, at_end));
    }
    return bound;
}

/* Labels ------------------------------------------------------------------------------------------ */

static int make_room(const mc_ways_t *w, mc_labels_t *l)
{
    if (l->n < l->room)
        return MESHCOLL_OK;
    const size_t room = l->room ? 2 * (size_t)l->room : FIRST_ROOM;
    mc_label_t *const label = realloc(l->label, sizeof *label * room);
    l->label = label ? label : l->label;
    double *const load = realloc(l->load, sizeof *load * room * (size_t)w->kind.n);
    l->load = load ? load : l->load;
    double *const mean = realloc(l->mean, sizeof *mean * room * (size_t)w->kind.n_means);
    l->mean = mean ? mean : l->mean;
    if (!label || !load || !mean)
        return mc_fail_memory("the planner's labels");
    l->room = (int32_t)room;
    return MESHCOLL_OK;
}

static void drop_label(const mc_ways_t *w, mc_labels_t *l, int32_t i)
{
    const size_t behind = (size_t)(--l->n - i);
    memmove(&l->label[i], &l->label[i + 1], behind * sizeof *l->label);
    memmove(mc_label_load(w, l, i), mc_label_load(w, l, i + 1),
            behind * (size_t)w->kind.n * sizeof *l->load);
    memmove(mc_label_mean(w, l, i), mc_label_mean(w, l, i + 1),
            behind * (size_t)w->kind.n_means * sizeof *l->mean);
}

/* A lower bound of the seconds of any strategy with a beginning of this kind and, from `node` on, the label
 * with `load` and `mean`. *own: the label's part of it; set only if it is within the limit by its means. */
static double least_of(const mc_ways_t *w, const double *load, const double *mean, int32_t kind,
                       int32_t node, double *own)
{
    const double *const before = before_of(w, kind, node);
    double sum[MOST_WIDTH];
    for (int32_t m = 0; m < w->kind.n_means; m++) {
        sum[w->kind.n + m] = mean[m] + before[w->kind.n + m];
        if (sum[w->kind.n + m] > wide_limit(w))
            return sum[w->kind.n + m];
    }
    for (int32_t k = 0; k < w->kind.n; k++)
        sum[k] = load[k] + before[k];
    *own = mc_load_price(&w->kind, load, sum);
    return seconds_of(w, sum);
}

/* May the new label, whose load is at index l->n, be within the limit? Sets its kinds and rank. */
static bool is_within(const mc_ways_t *w, const mc_labels_t *l, int32_t node, mc_label_t *label)
{
    const double *const load = mc_label_load(w, l, l->n), *const mean = mc_label_mean(w, l, l->n);
    double least = INFINITY;
    for (uint32_t left = label->kinds; left; left &= left - 1) {
        double own = 0;
        const double mine = least_of(w, load, mean, __builtin_ctz(left), node, &own);
        if (mine > wide_limit(w))
            label->kinds &= ~(left & -left);
        else if (mine < least) {
            least = mine;
            label->rank = least + own;
        }
    }
    return least < INFINITY;
}

/* May `a` replace `b` with regard to segments? A number above max_segments is allowed only if a phase needs
 * it. */
static bool as_needed(const mc_ways_t *w, const mc_labels_t *l, int32_t a, int32_t b)
{
    return l->segments <= w->max_segments || l->label[a].needs || !l->label[b].needs;
}

/* Is the last label dominated by one of those from `first` on? If not, drops those that it dominates. */
static bool is_replaced(const mc_ways_t *w, mc_labels_t *l, int32_t first)
{
    const int32_t mine = l->n - 1;
    for (int32_t i = first; i < mine; i++)
        if (replaces(w, mc_label_load(w, l, i), true, mc_label_load(w, l, mine)) &&
            as_needed(w, l, i, mine))
            return true;
    for (int32_t i = mine - 1; i >= first; i--)
        if (replaces(w, mc_label_load(w, l, l->n - 1), false, mc_label_load(w, l, i)) &&
            as_needed(w, l, l->n - 1, i))
            drop_label(w, l, i);
    return false;
}

static void drop_worst(const mc_ways_t *w, mc_labels_t *l, int32_t first)
{
    int32_t worst = l->n - 1;
    for (int32_t i = l->n - 2; i >= first; i--)
        worst = l->label[i].rank > l->label[worst].rank ? i : worst;
    drop_label(w, l, worst);
}

/* Adds a label to a state unless it is above the limit or dominated. `most`: labels of a state. */
static int add_label(const mc_ways_t *w, mc_labels_t *l, int32_t node, mc_label_t label,
                     int32_t most)
{
    const int32_t step = mc_label_step(label.phase);
    const int status = make_room(w, l);
    if (status)
        return status;
    const double *const by = mc_label_step_load(w, l, step);
    const double *const after = mc_label_load(w, l, label.next);
    const double *const mean = mc_label_mean(w, l, label.next);
    double *const load = mc_label_load(w, l, l->n);
    for (int32_t k = 0; k < w->kind.n; k++)
        load[k] = by[k] + after[k];
    for (int32_t m = 0; m < w->kind.n_means; m++)
        mc_label_mean(w, l, l->n)[m] = by[w->kind.n + m] + mean[m];
    label.kinds = l->label[label.next].kinds;
    if (!is_within(w, l, node, &label))
        return MESHCOLL_OK;
    label.needs = l->label[label.next].needs || mc_ways_needed(w, step) == l->segments;
    l->label[l->n++] = label;
    if (is_replaced(w, l, l->first[node]))
        l->n--;
    else if (l->n - l->first[node] > most)
        drop_worst(w, l, l->first[node]);
    return MESHCOLL_OK;
}

static int label_hop(const mc_ways_t *w, mc_labels_t *l, int32_t node, int32_t h, int32_t most)
{
    const mc_priced_hop_t hop = w->graph->hop[h];
    const int32_t *const kept = w->kept + w->graph->group[hop.group].first;
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < w->n_kept[hop.group]; i++)
        for (int32_t next = l->first[hop.next]; next < l->first[hop.next + 1] && !status; next++) {
            const mc_label_t label = {.phase = mc_label_phase(h, kept[i]), .next = next};
            status = add_label(w, l, node, label, most);
        }
    return status;
}

static int label_end(const mc_ways_t *w, mc_labels_t *l)
{
    const int status = make_room(w, l);
    if (status)
        return status;
    memset(mc_label_load(w, l, l->n), 0, sizeof *l->load * (size_t)w->kind.n);
    memset(mc_label_mean(w, l, l->n), 0, sizeof *l->mean * (size_t)w->kind.n_means);
    l->label[l->n++] = (mc_label_t){.next = -1, .kinds = (UINT32_C(1) << w->kind.n_wires) - 1};
    return MESHCOLL_OK;
}

int mc_labels_find(const mc_ways_t *w, mc_labels_t *l, int32_t most)
{
    const mc_priced_t *const graph = w->graph;
    int status = MESHCOLL_OK;
    l->n = 0;
    for (int32_t node = 0; node < graph->n_nodes && !status; node++) {
        const int32_t first = graph->first_hop[node], end = graph->first_hop[node + 1];
        l->first[node] = l->n;
        if (first == end)
            status = label_end(w, l);
        for (int32_t h = first; h < end && !status; h++)
            status = label_hop(w, l, node, h, most);
        l->first[node + 1] = l->n;
    }
    return status;
}

/* Room -------------------------------------------------------------------------------------------- */

int mc_ways_init(mc_ways_t *w, const mc_priced_t *graph, const mc_links_t *links,
                 const mc_planner_query_t *query, bool wants_all)
{
    const size_t n_steps = (size_t)graph->n_steps, n_groups = (size_t)graph->n_groups;
    *w = (mc_ways_t){.graph = graph,
                     .kind = mc_load_kind(graph, links),
                     .bytes = query->bytes,
                     .max_segments = query->max_segments,
                     .streams = query->pacing != NULL,
                     .wants_all = wants_all};
    w->width = w->kind.n + w->kind.n_means;
    const size_t nodes = (size_t)w->kind.n_wires * (size_t)graph->n_nodes;
    w->wire = malloc(sizeof *w->wire * n_steps);
    w->kept = malloc(sizeof *w->kept * n_steps);
    w->n_kept = malloc(sizeof *w->n_kept * n_groups);
    w->group = malloc(sizeof *w->group * n_groups * (size_t)w->width);
    w->before = malloc(sizeof *w->before * nodes * (size_t)w->width);
    if (!w->wire || !w->kept || !w->n_kept || !w->group || !w->before) {
        mc_ways_free(w);
        return mc_fail_memory("the planner's loads");
    }
    for (int32_t i = 0; i < graph->n_steps; i++)
        w->wire[i] = mc_load_wire(&w->kind, graph, &graph->step[i], query->bytes);
    return MESHCOLL_OK;
}

void mc_ways_free(mc_ways_t *w)
{
    free(w->wire);
    free(w->kept);
    free(w->n_kept);
    free(w->group);
    free(w->before);
    *w = (mc_ways_t){0};
}

int mc_labels_init(mc_labels_t *l, const mc_ways_t *w)
{
    *l = (mc_labels_t){.segments = 1};
    l->step = malloc(sizeof *l->step * (size_t)w->graph->n_steps * (size_t)w->width);
    l->first = calloc((size_t)w->graph->n_nodes + 1, sizeof *l->first);
    if (l->step && l->first)
        return MESHCOLL_OK;
    mc_labels_free(l);
    return mc_fail_memory("the planner's labels");
}

void mc_labels_free(mc_labels_t *l)
{
    free(l->step);
    free(l->first);
    free(l->label);
    free(l->load);
    free(l->mean);
    *l = (mc_labels_t){0};
}
