#include "compose/good.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_end(const mc_priced_t *graph, int32_t node)
{
    return graph->first_hop[node] == graph->first_hop[node + 1];
}

/* The hop of the cheapest way from `node` by one mean. */
static int32_t least_hop(const mc_bounds_t *b, const mc_cut_t *cut, int32_t block, int32_t lane,
                         int32_t node)
{
    const mc_priced_t *const graph = b->graph;
    int32_t next = -1;
    double least = INFINITY;
    for (int32_t h = graph->first_hop[node]; h < graph->first_hop[node + 1]; h++) {
        const mc_priced_hop_t hop = graph->hop[h];
        const double sum = mc_block_groups(b, cut, block)[hop.group].of[lane] +
                           mc_block_nodes(b, cut, block)[hop.next].of[lane];
        if (sum < least || next < 0) {
            least = sum;
            next = h;
        }
    }
    return next;
}

static int32_t least_step(const mc_cut_t *cut, int32_t block, int32_t lane, mc_priced_group_t group)
{
    const mc_lanes_t *const at_step = mc_block_steps(cut, block);
    int32_t step = group.first;
    for (int32_t i = group.first + 1; i < group.first + group.n; i++)
        step = at_step[i].of[lane] < at_step[step].of[lane] ? i : step;
    return step;
}

void mc_good_follow(const mc_bounds_t *b, const mc_cut_t *cut, int32_t block, int32_t lane,
                    mc_good_t *good)
{
    const mc_priced_t *const graph = b->graph;
    double load[MC_MOST_PARTS] = {0};
    mc_good_t met = {.segments = cut->segments};
    for (int32_t node = graph->n_nodes - 1; !is_end(graph, node);) {
        const int32_t h = least_hop(b, cut, block, lane, node);
        const int32_t step = least_step(cut, block, lane, graph->group[graph->hop[h].group]);
        for (int32_t k = 0; k < b->kind.n; k++)
            load[k] += mc_cut_step(b, cut, step)[k];
        met.path[met.n_phases++] = mc_path_phase(h, step);
        node = graph->hop[h].next;
    }
    met.seconds = mc_bounds_whole(b, load);
    if (met.seconds < good->seconds)
        *good = met;
}

/* The loads of what the mean follows from each node on. Hops lead to lower nodes. */
static void fill_rest(const mc_bounds_t *b, const mc_cut_t *cut, int32_t lane, double *rest)
{
    const mc_priced_t *const graph = b->graph;
    const int32_t n = b->kind.n_priced;
    for (int32_t node = 0; node < graph->n_nodes; node++) {
        double *const load = rest + (size_t)node * (size_t)n;
        memset(load, 0, sizeof *load * (size_t)n);
        if (is_end(graph, node))
            continue;
        const mc_priced_hop_t hop = graph->hop[least_hop(b, cut, 0, lane, node)];
        const double *const by =
            mc_cut_step(b, cut, least_step(cut, 0, lane, graph->group[hop.group]));
        const double *const after = rest + (size_t)hop.next * (size_t)n;
        for (int32_t k = 0; k < n; k++)
            load[k] = by[k] + after[k];
    }
}

/* The phase after which the path comes to the least. */
static uint64_t best_phase(const mc_bounds_t *b, const mc_cut_t *cut, const double *rest,
                           const double *load, int32_t node)
{
    const mc_priced_t *const graph = b->graph;
    const int32_t n = b->kind.n_priced;
    double least = INFINITY, sum[MC_MOST_PARTS];
    uint64_t phase = mc_path_phase(graph->first_hop[node], 0);
    for (int32_t h = graph->first_hop[node]; h < graph->first_hop[node + 1]; h++) {
        const mc_priced_group_t group = graph->group[graph->hop[h].group];
        const double *const after = rest + (size_t)graph->hop[h].next * (size_t)n;
        for (int32_t i = group.first; i < group.first + group.n; i++) {
            const double *const by = mc_cut_step(b, cut, i);
            for (int32_t k = 0; k < n; k++)
                sum[k] = load[k] + by[k] + after[k];
            const double seconds = mc_bounds_whole(b, sum);
            if (seconds < least) {
                least = seconds;
                phase = mc_path_phase(h, i);
            }
        }
    }
    return phase;
}

static int32_t strongest(const mc_bounds_t *b, const mc_cut_t *cut)
{
    const mc_lanes_t *const start = &mc_block_nodes(b, cut, 0)[b->graph->n_nodes - 1];
    int32_t lane = 0;
    for (int32_t l = 1; l < MC_LANES && l < b->n_means; l++)
        lane = start->of[l] > start->of[lane] ? l : lane;
    return lane;
}

int mc_good_roll_out(const mc_bounds_t *b, const mc_cut_t *cut, mc_good_t *good)
{
    const mc_priced_t *const graph = b->graph;
    const int32_t n = b->kind.n_priced;
    double *const rest = malloc(sizeof *rest * (size_t)n * (size_t)graph->n_nodes);
    double load[MC_MOST_PARTS] = {0};
    mc_good_t met = {.segments = cut->segments};
    if (!rest)
        return mc_fail_memory("the planner's bounds");
    fill_rest(b, cut, strongest(b, cut), rest);
    for (int32_t node = graph->n_nodes - 1; !is_end(graph, node);) {
        const uint64_t phase = best_phase(b, cut, rest, load, node);
        const double *const by = mc_cut_step(b, cut, mc_path_step(phase));
        for (int32_t k = 0; k < n; k++)
            load[k] += by[k];
        met.path[met.n_phases++] = phase;
        node = graph->hop[mc_path_hop(phase)].next;
    }
    free(rest);
    met.seconds = mc_bounds_whole(b, load);
    if (met.seconds < good->seconds)
        *good = met;
    return MESHCOLL_OK;
}
