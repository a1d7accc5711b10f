#include "compose/ends.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_end(const mc_priced_t *graph, int32_t node)
{
    return graph->first_hop[node] == graph->first_hop[node + 1];
}

/* The outermost dimension along which its steps run. */
static int32_t outermost(const mc_priced_t *graph, const mc_priced_hop_t *hop)
{
    return graph->step[graph->group[hop->group].first].phase.dims.first;
}

static uint32_t find_kinds(const mc_priced_t *graph)
{
    uint32_t kinds = 0;
    for (int32_t h = 0; h < graph->n_hops; h++)
        if (is_end(graph, graph->hop[h].next))
            kinds |= UINT32_C(1) << outermost(graph, &graph->hop[h]);
    return kinds;
}

/* Of each group, as mc_ends_t has it of paths. */
static void least_of_groups(const mc_bounds_t *b, double *least)
{
    const int32_t n = b->kind.n_priced;
    for (int32_t g = 0; g < b->graph->n_groups; g++, least += 2 * n) {
        const mc_priced_group_t group = b->graph->group[g];
        for (int32_t k = 0; k < 2 * n; k++)
            least[k] = INFINITY;
        for (int32_t i = group.first; i < group.first + group.n; i++) {
            const double *const fixed = b->fixed + (size_t)i * (size_t)b->kind.n;
            const double *const moved = b->moved + (size_t)i * (size_t)b->kind.n;
            for (int32_t k = 0; k < n; k++) {
                least[k] = fixed[k] < least[k] ? fixed[k] : least[k];
                least[n + k] = moved[k] < least[n + k] ? moved[k] : least[n + k];
            }
        }
    }
}

static void lower_sums(double *restrict least, const double *restrict at,
                       const double *restrict after, int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        const double sum = at[k] + after[k];
        least[k] = sum < least[k] ? sum : least[k];
    }
}

static void fill_kind(const mc_bounds_t *b, const double *at_group, int32_t kind, double *least)
{
    const mc_priced_t *const graph = b->graph;
    const int32_t n = 2 * b->kind.n_priced;
    for (int32_t node = 0; node < graph->n_nodes; node++) {
        const int32_t first = graph->first_hop[node], end = graph->first_hop[node + 1];
        double *const mine = least + (size_t)node * (size_t)n;
        for (int32_t k = 0; k < n; k++)
            mine[k] = first < end ? INFINITY : 0;
        for (int32_t h = first; h < end; h++) {
            const mc_priced_hop_t *const hop = &graph->hop[h];
            const double *const after = least + (size_t)hop->next * (size_t)n;
            const bool other = is_end(graph, hop->next) && outermost(graph, hop) != kind;
            if (!other && after[0] < INFINITY)
                lower_sums(mine, at_group + (size_t)hop->group * (size_t)n, after, n);
        }
    }
}

static bool is_within(const mc_bounds_t *b, const mc_cut_t *cut, const double *load,
                      const double *least, double limit)
{
    const int32_t n = b->kind.n_priced;
    double sum[MC_MOST_PARTS];
    if (!(least[0] < INFINITY))
        return false;
    for (int32_t k = 0; k < n; k++)
        sum[k] = load[k] + least[k] * cut->times.fixed[k] + least[n + k] * cut->times.moved[k];
    return mc_bounds_whole(b, sum) <= limit;
}

static const double *least_from(const mc_ends_t *e, const mc_bounds_t *b, int32_t kind,
                                int32_t node)
{
    return e->least[kind] + (size_t)node * (size_t)(2 * b->kind.n_priced);
}

static bool is_wanted(const mc_bounds_t *b, const mc_cut_t *cut, int32_t n_cuts,
                      const double *least, double limit)
{
    const double none[MC_MOST_PARTS] = {0};
    for (int32_t c = 0; c < n_cuts; c++)
        if (cut[c].bound < INFINITY && is_within(b, &cut[c], none, least, limit))
            return true;
    return false;
}

int mc_ends_find(mc_ends_t *e, const mc_bounds_t *b, const mc_cut_t *cut, int32_t n_cuts,
                 double limit)
{
    const size_t parts = 2 * (size_t)b->kind.n_priced;
    const size_t n_nodes = (size_t)b->graph->n_nodes;
    const uint32_t kinds = find_kinds(b->graph);
    double *const at_group = malloc(sizeof *at_group * parts * (size_t)b->graph->n_groups);
    bool failed = !at_group;
    if (at_group)
        least_of_groups(b, at_group);
    for (int32_t d = 0; d < MC_MAX_DIMS && !failed; d++) {
        if (!(kinds >> d & 1))
            continue;
        double *const least = malloc(sizeof *least * parts * n_nodes);
        failed = !least;
        if (failed)
            break;
        fill_kind(b, at_group, d, least);
        if (is_wanted(b, cut, n_cuts, least + (n_nodes - 1) * parts, limit))
            e->least[e->n++] = least;
        else
            free(least);
    }
    free(at_group);
    e->known = !failed;
    return failed ? mc_fail_memory("the planner's bounds of ends") : MESHCOLL_OK;
}

void mc_ends_free(mc_ends_t *e)
{
    for (int32_t k = 0; k < e->n; k++)
        free(e->least[k]);
    *e = (mc_ends_t){0};
}

mc_end_set_t mc_ends_within(const mc_ends_t *e, const mc_bounds_t *b, const mc_cut_t *cut,
                            const double *load, int32_t node, double limit, mc_end_set_t ends)
{
    mc_end_set_t within = 0;
    for (; ends; ends &= ends - 1) {
        const int32_t k = __builtin_ctz(ends);
        if (is_within(b, cut, load, least_from(e, b, k, node), limit))
            within |= UINT32_C(1) << k;
    }
    return within;
}
