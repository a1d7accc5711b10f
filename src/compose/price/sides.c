#include "compose/price/sides.h"

#include <math.h>

/* The ranks' own time. In the textbook's model (mc_busy_t) messages and sums count here as well as on the
 * link, because over all dimensions they bound how often a segment can start. */
static mc_linear_t own_of(const mc_term_t *busy, const mc_links_t *links, int32_t d)
{
    const mc_term_t bytes_only = mc_term_bytes(busy);
    if (mc_links_are_apart(links, d))
        return mc_linear_busy(busy, links, d).own;
    return (mc_linear_t){mc_term_own(busy, links, d, 0), mc_term_own(&bytes_only, links, d, 1)};
}

static void add_phase(mc_side_flow_t *flow, const mc_phase_cost_t *cost, const mc_links_t *links)
{
    const int32_t i = flow->n++;
    for (int32_t d = 0; d < links->ndims; d++) {
        const mc_term_t *const term = &cost->once.dim[d], *const busy = &cost->busy.dim[d];
        const int32_t wire = mc_links_wire(links, d);
        if (!mc_phase_crosses(cost, d))
            continue;
        const mc_linear_t once = mc_linear_of(term, links, d);
        flow->phase[i].links |= 1u << wire;
        flow->phase[i].once = mc_linear_add(flow->phase[i].once, once);
        flow->phase[i].busy = mc_linear_add(flow->phase[i].busy, mc_linear_of(busy, links, d));
        flow->busy[wire] = mc_linear_add(flow->busy[wire], mc_linear_busy(busy, links, d).link);
        flow->own = mc_linear_add(flow->own, own_of(busy, links, d));
    }
    const mc_linear_t extra = {0, cost->network.extra};
    flow->phase[i].once = mc_linear_add(flow->phase[i].once, extra);
    flow->phase[i].busy = mc_linear_add(flow->phase[i].busy, extra);
    for (int32_t k = 0; k < MC_NETWORK_PARTS; k++) {
        flow->phase[i].links |= (unsigned)(cost->network.busy[k] > 0) << (MC_BUSY_NETWORK + k);
        flow->busy[MC_BUSY_NETWORK + k].per_byte += cost->network.busy[k];
    }
}

mc_side_flow_t mc_flow_of(const mc_strategy_t *s, int32_t side, const mc_mesh_t *mesh,
                          const mc_links_t *links, int32_t root)
{
    mc_side_flow_t flow = {0};
    for (int32_t i = mc_side_first(s, side); i < mc_side_end(s, side); i++) {
        const mc_phase_cost_t cost = mc_strategy_phase_cost(s, mesh, links, root, i);
        add_phase(&flow, &cost, links);
    }
    flow.shares_cores = mc_links_share_cores(links);
    return flow;
}

/* Starts a phase when its side is ready and its links are free. Updates both times. */
static void run_phase(const mc_side_flow_t *flow, int32_t i, double bytes, double *ready,
                      double free_at[MC_BUSY_WIRES])
{
    double start = *ready;
    for (int32_t d = 0; d < MC_BUSY_WIRES; d++)
        if (flow->phase[i].links & 1u << d && free_at[d] > start)
            start = free_at[d];
    const double ended = start + mc_linear_at(flow->phase[i].once, bytes);
    const double released = fmin(ended, start + mc_linear_at(flow->phase[i].busy, bytes));
    for (int32_t d = 0; d < MC_BUSY_WIRES; d++)
        if (flow->phase[i].links & 1u << d)
            free_at[d] = released;
    *ready = ended;
}

/* Seconds of the first segment of each side. */
static double run_both(const mc_side_flow_t *a, const mc_side_flow_t *b, double bytes)
{
    double ready[2] = {0}, free_at[MC_BUSY_WIRES] = {0};
    for (int32_t i = 0; i < a->n || i < b->n; i++) {
        if (i < a->n)
            run_phase(a, i, bytes, &ready[0], free_at);
        if (i < b->n)
            run_phase(b, i, bytes, &ready[1], free_at);
    }
    return fmax(ready[0], ready[1]);
}

static mc_pipeline_t pipeline_of(const mc_side_flow_t *a, const mc_side_flow_t *b, double bytes)
{
    mc_pipeline_t pipeline;
    double wire[MC_BUSY_WIRES];
    const double own = mc_linear_at(mc_linear_add(a->own, b->own), bytes);
    for (int32_t d = 0; d < MC_BUSY_WIRES; d++)
        wire[d] = mc_linear_at(mc_linear_add(a->busy[d], b->busy[d]), bytes);
    pipeline.every =
        mc_pipeline_every(wire, MC_BUSY_WIRES, own, a->shares_cores, &pipeline.busiest);
    pipeline.fill = fmax(run_both(a, b, bytes), own);
    return pipeline;
}

double mc_flows_seconds(const mc_side_flow_t *a, const mc_side_flow_t *b, uint32_t segments,
                        double n)
{
    const mc_pipeline_t pipeline = pipeline_of(a, b, n / segments);
    return mc_cost_rounded(pipeline.fill + (segments / 2 - 1) * pipeline.every);
}

mc_pipeline_t mc_sides_pipeline(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                const mc_links_t *links, int32_t root, double n)
{
    const mc_side_flow_t a = mc_flow_of(strategy, 0, mesh, links, root);
    const mc_side_flow_t b = mc_flow_of(strategy, 1, mesh, links, root);
    return pipeline_of(&a, &b, n / strategy->segments);
}
