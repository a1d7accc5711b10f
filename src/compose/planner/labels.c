#include "compose/planner/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Loads ------------------------------------------------------------------------------------------ */

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The price of a path of two parts with these loads. */
static double price_of_sum(int32_t n_parts, const double *a, const double *b)
{
    double busy = 0;
    for (int32_t k = 1; k < n_parts; k++)
        busy = larger(busy, a[k] + b[k]);
    return a[0] + b[0] + busy;
}

/* Each second that a wire is busier adds at most a second to the price, so the fill that `a` saves must cover it. */
bool mc_load_cheaper(int32_t n_parts, const double *a, const double *b, double margin)
{
    const double saved = b[0] - a[0] - margin;
    for (int32_t w = 1; w < n_parts; w++)
        if (a[w] - b[w] > saved)
            return false;
    return saved >= 0;
}

/* The first of strategies of equal cost is wanted, in the order of enumeration. So an earlier load dominates one
 * that is equal but for rounding, and a later one must be cheaper by more than that. */
static bool dominates(const mc_labels_t *l, const double *a, bool earlier, const double *b)
{
    static const double rounding = 1e-13; /* as part of the fill */
    return earlier ? mc_load_cheaper(l->n_parts, a, b, -rounding * b[0])
                   : b[0] > 0 && mc_load_cheaper(l->n_parts, a, b, MC_SLACK * b[0]);
}

double *mc_labels_step(const mc_labels_t *l, int32_t step)
{
    return l->load + (size_t)step * (size_t)l->n_parts;
}

static double *least_before(const mc_labels_t *l, uint32_t node)
{
    return l->before + (size_t)node * (size_t)l->n_parts;
}

uint32_t mc_labels_needed(const mc_labels_t *l, int32_t step)
{
    return l->query->pacing ? l->graph->step[step].least_segments : 1;
}

static void load_step(const mc_labels_t *l, uint32_t step)
{
    const mc_priced_step_t *const s = &l->graph->step[step];
    double *const load = mc_labels_step(l, (int32_t)step), *const ranks = &load[l->n_parts - 1];
    const double piece = l->query->bytes / l->segments;
    load[0] = mc_linear_at(s->once, piece);
    for (int32_t k = 1; k < l->n_parts; k++)
        load[k] = (l->segments - 1.0) * mc_linear_at(s->busy[k - 1], piece);
    if (mc_links_share_cores(l->graph->links)) {
        load[0] += *ranks;
        *ranks = 0;
    }
}

/* Bounds ----------------------------------------------------------------------------------------- */

static void lower(const mc_labels_t *l, double *least, const double *from, const double *by)
{
    for (int32_t k = 0; k < l->n_parts; k++)
        least[k] = lesser(least[k], from[k] + by[k]);
}

/* The least of each part over paths to each node. Hops lead to nodes with lower indices. Returns the least price that
 * a path to an end may have. */
static double find_before(mc_labels_t *l)
{
    const mc_priced_t *const g = l->graph;
    static const double none[MC_MOST_PARTS];
    double bound = INFINITY;
    for (size_t k = 0; k < (size_t)g->n_nodes * (size_t)l->n_parts; k++)
        l->before[k] = INFINITY;
    memset(least_before(l, g->n_nodes - 1), 0, sizeof *l->before * (size_t)l->n_parts);
    for (uint32_t node = g->n_nodes; node-- > 0;) {
        const double *const from = least_before(l, node);
        if (from[0] == INFINITY)
            continue;
        if (g->first_hop[node] == g->first_hop[node + 1])
            bound = lesser(bound, price_of_sum(l->n_parts, from, none));
        for (uint32_t h = g->first_hop[node]; h < g->first_hop[node + 1]; h++) {
            const mc_priced_group_t group = g->group[g->hop[h].group];
            for (int32_t i = 0; i < l->n_useful[g->hop[h].group]; i++)
                lower(l, least_before(l, (uint32_t)g->hop[h].next), from,
                      mc_labels_step(l, l->useful[group.first + i]));
        }
    }
    return bound;
}

static bool is_useful(const mc_labels_t *l, mc_priced_group_t group, int32_t i)
{
    if (mc_labels_needed(l, i) > l->segments)
        return false;
    for (int32_t k = group.first; k < group.first + group.n; k++)
        if (k != i && mc_labels_needed(l, k) == mc_labels_needed(l, i) &&
            dominates(l, mc_labels_step(l, k), k < i, mc_labels_step(l, i)))
            return false;
    return true;
}

static void find_useful(mc_labels_t *l)
{
    for (uint32_t g = 0; g < l->graph->n_groups; g++) {
        const mc_priced_group_t group = l->graph->group[g];
        l->n_useful[g] = 0;
        for (int32_t i = group.first; i < group.first + group.n; i++)
            if (is_useful(l, group, i))
                l->useful[group.first + l->n_useful[g]++] = i;
    }
}

double mc_labels_begin(mc_labels_t *l, uint32_t segments)
{
    l->segments = segments;
    for (uint32_t i = 0; i < l->graph->n_steps; i++)
        load_step(l, i);
    find_useful(l);
    return find_before(l) + mc_links_call(l->graph->links);
}

/* Labels ----------------------------------------------------------------------------------------- */

/* May label `one` replace `other`? Numbers of segments above max_segments are allowed only if a phase needs them, so
 * there a label that needs them is not replaced by one that does not. */
static bool may_replace(const mc_labels_t *l, const mc_label_t *one, const mc_label_t *other)
{
    return l->segments <= l->query->max_segments || one->needs || !other->needs;
}

static bool is_dominated(const mc_labels_t *l, uint32_t first, const mc_label_t *label)
{
    for (uint32_t i = first; i < l->n; i++)
        if (dominates(l, l->label[i].load, true, label->load) &&
            may_replace(l, &l->label[i], label))
            return true;
    return false;
}

static void drop_dominated(mc_labels_t *l, uint32_t first, const mc_label_t *label)
{
    uint32_t n = first;
    for (uint32_t i = first; i < l->n; i++)
        if (!dominates(l, label->load, false, l->label[i].load) ||
            !may_replace(l, label, &l->label[i]))
            l->label[n++] = l->label[i];
    l->n = n;
}

/* The label of the highest bound, the last one of equals. */
static uint32_t worst_of(const mc_labels_t *l, uint32_t first)
{
    uint32_t worst = l->n - 1;
    for (uint32_t i = l->n - 1; i-- > first;)
        worst = l->label[i].bound > l->label[worst].bound ? i : worst;
    return worst;
}

static void drop(mc_labels_t *l, uint32_t label)
{
    memmove(&l->label[label], &l->label[label + 1], (l->n - label - 1) * sizeof *l->label);
    l->n--;
}

static bool append(mc_labels_t *l, const mc_label_t *label)
{
    mc_label_t *const list = mc_grown(l->label, l->n, &l->capacity, sizeof *list);
    if (!list)
        return false;
    l->label = list;
    list[l->n++] = *label;
    return true;
}

/* The label that begins with `step` and goes on as `next`. */
static mc_label_t label_of(const mc_labels_t *l, uint32_t node, int32_t step, uint32_t next)
{
    const mc_label_t *const rest = &l->label[next];
    const double *const by = mc_labels_step(l, step), *const before = least_before(l, node);
    mc_label_t label = {.step = step,
                        .next = (int32_t)next,
                        .needs = rest->needs || mc_labels_needed(l, step) == l->segments};
    for (int32_t k = 0; k < l->n_parts; k++)
        label.load[k] = by[k] + rest->load[k];
    label.bound = price_of_sum(l->n_parts, label.load, before);
    return label;
}

static bool add_label(mc_labels_t *l, uint32_t node, const mc_label_t *label, uint32_t width)
{
    const uint32_t first = l->first[node];
    if (label->bound > mc_labels_limit(l))
        return true;
    if (label->bound >= l->highest) {
        l->full = true;
        return true;
    }
    if (is_dominated(l, first, label))
        return true;
    drop_dominated(l, first, label);
    if (!append(l, label))
        return false;
    if (l->n - first > width) {
        drop(l, worst_of(l, first));
        l->full = true;
    }
    l->highest = l->n - first == width ? l->label[worst_of(l, first)].bound : INFINITY;
    return true;
}

static bool label_node(mc_labels_t *l, uint32_t node, uint32_t width)
{
    const mc_priced_t *const g = l->graph;
    for (uint32_t h = g->first_hop[node]; h < g->first_hop[node + 1]; h++) {
        const uint32_t to = (uint32_t)g->hop[h].next, group = (uint32_t)g->hop[h].group;
        const int32_t *const useful = l->useful + g->group[group].first;
        for (int32_t i = 0; i < l->n_useful[group]; i++)
            for (uint32_t next = l->first[to]; next < l->first[to + 1]; next++) {
                const mc_label_t label = label_of(l, node, useful[i], next);
                if (!add_label(l, node, &label, width))
                    return false;
            }
    }
    return true;
}

int mc_labels_find(mc_labels_t *l, uint32_t width)
{
    const mc_priced_t *const g = l->graph;
    const mc_label_t end = {.next = -1, .load[0] = mc_links_call(g->links)};
    l->n = 0;
    l->full = false;
    for (uint32_t node = 0; node < g->n_nodes; node++) {
        const bool ends = g->first_hop[node] == g->first_hop[node + 1];
        l->first[node] = l->n;
        l->highest = INFINITY;
        if (ends ? !append(l, &end) : !label_node(l, node, width))
            return mc_fail_memory("the planner's labels");
        l->first[node + 1] = l->n;
    }
    return MESHCOLL_OK;
}

bool mc_labels_lead_on(const mc_labels_t *l, uint32_t node, const double *load)
{
    for (uint32_t i = l->first[node]; i < l->first[node + 1]; i++)
        if (price_of_sum(l->n_parts, load, l->label[i].load) <= mc_labels_limit(l))
            return true;
    return false;
}

int mc_labels_init(mc_labels_t *l, const mc_priced_t *graph, const mc_planner_query_t *query)
{
    const int32_t n_parts = 2 + mc_priced_wires(graph->links);
    const size_t load = sizeof *l->load * (size_t)n_parts;
    *l = (mc_labels_t){.graph = graph,
                       .query = query,
                       .n_parts = n_parts,
                       .load = malloc(graph->n_steps * load),
                       .before = malloc(graph->n_nodes * load),
                       .useful = malloc(graph->n_steps * sizeof *l->useful),
                       .n_useful = malloc(graph->n_groups * sizeof *l->n_useful),
                       .first = malloc((graph->n_nodes + 1) * sizeof *l->first)};
    if (l->load && l->before && l->useful && l->n_useful && l->first)
        return MESHCOLL_OK;
    mc_labels_free(l);
    return mc_fail_memory("the planner's labels");
}

void mc_labels_free(mc_labels_t *l)
{
    free(l->load);
    free(l->before);
    free(l->useful);
    free(l->n_useful);
    free(l->first);
    free(l->label);
    *l = (mc_labels_t){0};
}
