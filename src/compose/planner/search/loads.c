#include "compose/planner/search/loads.h"

mc_load_kind_t mc_load_kind(const mc_priced_t *graph)
{
    const bool shares = mc_links_share_cores(graph->links);
    const int32_t n = graph->n_wires + (graph->ranks_apart && !shares);
    return (mc_load_kind_t){
        .n_wires = n, .shares_cores = shares, .n = 1 + n, .n_means = n > 1 ? 1 + n : 1};
}

void mc_load_of(const mc_load_kind_t *kind, const mc_priced_t *graph, const mc_priced_step_t *step,
                double bytes, uint32_t segments, double *load)
{
    const mc_price_t *const price = &graph->price[step->price];
    const double piece = bytes * mc_ratio_value(step->share) / segments, rest = segments - 1.0;
    load[0] = mc_linear_at(price->once, piece);
    if (kind->shares_cores)
        load[0] += rest * mc_linear_at(price->busy[graph->n_wires], piece);
    for (int32_t w = 0; w < kind->n_wires; w++)
        load[1 + w] = rest * mc_linear_at(price->busy[w], piece);
}

int32_t mc_load_wire(const mc_load_kind_t *kind, const mc_priced_t *graph,
                     const mc_priced_step_t *step, double bytes)
{
    const mc_price_t *const price = &graph->price[step->price];
    const double all = bytes * mc_ratio_value(step->share);
    double busy[MC_MOST_PARTS];
    int32_t busiest;
    for (int32_t w = 0; w < kind->n_wires; w++)
        busy[w] = mc_linear_at(price->busy[w], all);
    mc_pipeline_busiest(busy, kind->n_wires, &busiest);
    return busiest;
}

double mc_load_price(const mc_load_kind_t *kind, const double *load)
{
    int32_t busiest;
    return load[0] + mc_pipeline_busiest(load + 1, kind->n_wires, &busiest);
}

/* Each second that a wire is busier adds at most a second to the price, so the fill that `a` saves must cover it. */
bool mc_load_cheaper(const mc_load_kind_t *kind, const double *a, const double *b, double margin)
{
    const double saved = b[0] - a[0] - margin;
    for (int32_t w = 0; w < kind->n_wires; w++)
        if (a[1 + w] - b[1 + w] > saved)
            return false;
    return saved >= 0;
}

void mc_load_means(const mc_load_kind_t *kind, const double *load, double *mean)
{
    double all = 0;
    for (int32_t w = 0; w < kind->n_wires; w++) {
        all += load[1 + w];
        if (kind->n_means > 1)
            mean[1 + w] = load[0] + load[1 + w];
    }
    mean[0] = load[0] + all / kind->n_wires;
}
