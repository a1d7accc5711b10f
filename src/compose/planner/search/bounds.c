#include "compose/planner/search/bounds.h"

#include <math.h>
#include <stdlib.h>

enum { ANY_KIND = -1 };

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

static double *group_of(const mc_bounds_t *b, int32_t group)
{
    return b->group + (size_t)group * (size_t)b->width;
}

/* The row of any kind is that of kind 0. */
static double *row_of(const mc_bounds_t *b, int32_t kind, int32_t node)
{
    return mc_bounds_before(b, kind == ANY_KIND ? 0 : kind, node);
}

/* Steps ------------------------------------------------------------------------------------------ */

/* Rounds to a multiple of the quantum. A number too large for this is far above the limit, and stays. */
static double rounded(const mc_bounds_t *b, double seconds)
{
    const double carry = b->quantum * 0x1.8p52;
    return b->quantum > 0 && seconds < carry / 4 ? seconds + carry - carry : seconds;
}

static bool is_useful(const mc_bounds_t *b, mc_priced_group_t group, int32_t i)
{
    if (mc_bounds_needed(b, i) > b->segments)
        return false;
    for (int32_t k = group.first; k < group.first + group.n && !b->wants_all; k++)
        if (k != i && mc_bounds_needed(b, k) == mc_bounds_needed(b, i) &&
            mc_bounds_dominates(b, mc_bounds_step(b, k), k < i, mc_bounds_step(b, i)))
            return false;
    return true;
}

static void find_useful(mc_bounds_t *b)
{
    for (int32_t g = 0; g < b->graph->n_groups; g++) {
        const mc_priced_group_t group = b->graph->group[g];
        int32_t n = 0;
        for (int32_t i = group.first; i < group.first + group.n; i++)
            if (is_useful(b, group, i))
                b->useful[group.first + n++] = i;
        b->n_useful[g] = n;
    }
}

/* The least of parts [first, end) over the steps of each group. */
static void find_least(mc_bounds_t *b, int32_t first, int32_t end)
{
    for (int32_t g = 0; g < b->graph->n_groups; g++) {
        const int32_t *const useful = b->useful + b->graph->group[g].first;
        double *const least = group_of(b, g);
        for (int32_t k = first; k < end; k++)
            least[k] = INFINITY;
        for (int32_t i = 0; i < b->n_useful[g]; i++)
            for (int32_t k = first; k < end; k++)
                least[k] = lesser(least[k], mc_bounds_step(b, useful[i])[k]);
    }
}

static void load_steps(mc_bounds_t *b)
{
    for (int32_t i = 0; i < b->graph->n_steps; i++) {
        double *const load = mc_bounds_step(b, i);
        mc_load_of(&b->kind, b->graph, &b->graph->step[i], b->bytes, b->segments, load);
        for (int32_t k = 0; k < b->kind.n; k++)
            load[k] = rounded(b, load[k]);
    }
    find_useful(b);
    find_least(b, 0, b->kind.n);
}

static void add_means(mc_bounds_t *b)
{
    for (int32_t i = 0; i < b->graph->n_steps; i++) {
        double *const load = mc_bounds_step(b, i);
        mc_load_means(&b->kind, load, load + b->kind.n);
    }
    find_least(b, b->kind.n, b->width);
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
static void begin(const mc_bounds_t *b, int32_t kind, int32_t first, int32_t end)
{
    const mc_priced_t *const graph = b->graph;
    const int32_t start = graph->n_nodes - 1;
    for (int32_t h = graph->first_hop[start]; h < graph->first_hop[start + 1]; h++) {
        const mc_priced_hop_t hop = graph->hop[h];
        const int32_t *const useful = b->useful + graph->group[hop.group].first;
        for (int32_t i = 0; i < b->n_useful[hop.group]; i++)
            if (kind == ANY_KIND || b->wire[useful[i]] == kind)
                lower(row_of(b, kind, hop.next), row_of(b, kind, start),
                      mc_bounds_step(b, useful[i]), first, end);
    }
}

/* The least of parts [first, end) over all beginnings of this kind, by node, and over all whole strategies:
 * *at_end. Hops lead to nodes with lower indices, so nodes are visited in descending order. */
static void find_before(const mc_bounds_t *b, int32_t kind, int32_t first, int32_t end,
                        double *at_end)
{
    static const double none[MC_MOST_WIDTH];
    const mc_priced_t *const graph = b->graph;
    for (int32_t node = 0; node < graph->n_nodes; node++)
        for (int32_t k = first; k < end; k++)
            row_of(b, kind, node)[k] = INFINITY;
    for (int32_t k = first; k < end; k++)
        row_of(b, kind, graph->n_nodes - 1)[k] = 0;
    for (int32_t k = first; k < end; k++)
        at_end[k] = INFINITY;
    begin(b, kind, first, end);
    for (int32_t node = graph->n_nodes - 2; node >= 0; node--) {
        const double *const from = row_of(b, kind, node);
        if (from[first] == INFINITY)
            continue;
        if (graph->first_hop[node] == graph->first_hop[node + 1])
            lower(at_end, from, none, first, end);
        for (int32_t h = graph->first_hop[node]; h < graph->first_hop[node + 1]; h++)
            lower(row_of(b, kind, graph->hop[h].next), from, group_of(b, graph->hop[h].group),
                  first, end);
    }
}

double mc_bounds_seconds(const mc_bounds_t *b, const double *sum)
{
    if (sum[0] == INFINITY)
        return INFINITY;
    double most = mc_load_price(&b->kind, sum);
    for (int32_t k = b->kind.n; k < b->width; k++)
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

double mc_bounds_set(mc_bounds_t *b, uint32_t segments, double limit)
{
    double at_end[MC_MOST_WIDTH], bound = INFINITY;
    b->limit = limit;
    b->quantum = power_of_two(limit) * QUANTUM;
    b->segments = segments;
    load_steps(b);
    find_before(b, ANY_KIND, 0, b->kind.n, at_end);
    if (at_end[0] == INFINITY)
        return INFINITY;
    add_means(b);
    find_before(b, ANY_KIND, b->kind.n, b->width, at_end);
    const double by_any = mc_bounds_seconds(b, at_end);
    if (b->kind.n_wires == 1 || by_any > mc_bounds_limit(b))
        return by_any;
    for (int32_t kind = 0; kind < b->kind.n_wires; kind++) {
        find_before(b, kind, 0, b->width, at_end);
        bound = lesser(bound, mc_bounds_seconds(b, at_end));
    }
    return bound;
}

/* Memory ----------------------------------------------------------------------------------------- */

int mc_bounds_init(mc_bounds_t *b, const mc_priced_t *graph, const mc_planner_query_t *query,
                   bool wants_all)
{
    const size_t n_steps = (size_t)graph->n_steps, n_groups = (size_t)graph->n_groups;
    *b = (mc_bounds_t){.graph = graph,
                       .kind = mc_load_kind(graph),
                       .bytes = query->bytes,
                       .max_segments = query->max_segments,
                       .paced = query->pacing != NULL,
                       .wants_all = wants_all};
    b->width = b->kind.n + b->kind.n_means;
    const size_t nodes = (size_t)b->kind.n_wires * (size_t)graph->n_nodes;
    b->wire = malloc(sizeof *b->wire * n_steps);
    b->useful = malloc(sizeof *b->useful * n_steps);
    b->n_useful = malloc(sizeof *b->n_useful * n_groups);
    b->step = malloc(sizeof *b->step * n_steps * (size_t)b->width);
    b->group = malloc(sizeof *b->group * n_groups * (size_t)b->width);
    b->before = malloc(sizeof *b->before * nodes * (size_t)b->width);
    if (!b->wire || !b->useful || !b->n_useful || !b->step || !b->group || !b->before) {
        mc_bounds_free(b);
        return mc_fail_memory("the planner's loads");
    }
    for (int32_t i = 0; i < graph->n_steps; i++)
        b->wire[i] = mc_load_wire(&b->kind, graph, &graph->step[i], query->bytes);
    return MESHCOLL_OK;
}

void mc_bounds_free(mc_bounds_t *b)
{
    free(b->wire);
    free(b->useful);
    free(b->n_useful);
    free(b->step);
    free(b->group);
    free(b->before);
    *b = (mc_bounds_t){0};
}
