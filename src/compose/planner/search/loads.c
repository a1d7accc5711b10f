#include "compose/planner/search/loads.h"

#include "compose/cost/pipeline.h"

static mc_load_view_t view_of(const mc_load_kind_t *kind, int32_t i)
{
    /* no hypotenuse is shorter than its projection on a unit vector (each at most one long) */
    static const struct {
        double wire, ranks;
    } turn[MC_TURNS] = {{1, 0}, {0.8, 0.6}, {0.38, 0.92}, {0, 1}};
    const int32_t n = kind->n_wires > 1 ? kind->n_wires + 1 : 1, which = i % n;
    mc_load_view_t view = {.ranks = kind->n_busy > kind->n_wires ? turn[i / n].ranks : 0};
    for (int32_t w = 0; w < kind->n_wires; w++)
        if (which == 0)
            view.wire[w] = turn[i / n].wire / kind->n_wires;
        else if (which == w + 1)
            view.wire[w] = turn[i / n].wire;
    return view;
}

mc_load_kind_t mc_load_kind(const mc_priced_t *graph)
{
    const int32_t wires = graph->n_wires, n_busy = wires + graph->ranks_apart;
    mc_load_kind_t kind = {.n_wires = wires,
                           .n_busy = n_busy,
                           .n = 1 + n_busy,
                           .n_means =
                               (graph->ranks_apart ? MC_TURNS : 1) * (wires > 1 ? wires + 1 : 1)};
    for (int32_t i = 0; i < kind.n_means; i++)
        kind.view[i] = view_of(&kind, i);
    return kind;
}

void mc_load_of(const mc_load_kind_t *kind, const mc_priced_t *graph, const mc_priced_step_t *step,
                double bytes, uint32_t segments, double *load)
{
    const mc_price_t *const price = &graph->price[step->price];
    const double piece = bytes * mc_ratio_value(step->share) / segments, rest = segments - 1.0;
    load[0] = mc_linear_at(price->once, piece);
    for (int32_t i = 0; i < kind->n_busy; i++)
        load[1 + i] = rest * mc_linear_at(price->busy[i], piece);
}

int32_t mc_load_wire(const mc_load_kind_t *kind, const mc_priced_t *graph,
                     const mc_priced_step_t *step, double bytes)
{
    const mc_price_t *const price = &graph->price[step->price];
    const double all = bytes * mc_ratio_value(step->share);
    double busy[MC_MAX_DIMS];
    int32_t busiest;
    for (int32_t w = 0; w < kind->n_wires; w++)
        busy[w] = mc_linear_at(price->busy[w], all);
    mc_pipeline_busiest(busy, kind->n_wires, &busiest);
    return busiest;
}

double mc_load_price(const mc_load_kind_t *kind, const double *load)
{
    int32_t busiest;
    const double most = mc_pipeline_busiest(load + 1, kind->n_wires, &busiest);
    return load[0] +
           (kind->n_busy > kind->n_wires ? mc_busy_both(most, load[1 + kind->n_wires]) : most);
}

static double above(double a, double b)
{
    return a > b ? a - b : 0;
}

/* Each second that a wire or the ranks are busier adds at most a second to the price, so the fill that `a`
 * saves must cover these. */
bool mc_load_cheaper(const mc_load_kind_t *kind, const double *a, const double *b, double margin)
{
    double most = 0, saved = b[0] - a[0] - margin;
    if (saved < 0)
        return false;
    for (int32_t w = 0; w < kind->n_wires; w++) {
        const double more = above(a[1 + w], b[1 + w]);
        if (more > saved)
            return false;
        most = more > most ? more : most;
    }
    if (kind->n_busy > kind->n_wires)
        saved -= above(a[1 + kind->n_wires], b[1 + kind->n_wires]);
    return most <= saved;
}

void mc_load_means(const mc_load_kind_t *kind, const double *load, double *mean)
{
    for (int32_t i = 0; i < kind->n_means; i++) {
        const mc_load_view_t *const view = &kind->view[i];
        mean[i] = load[0];
        for (int32_t w = 0; w < kind->n_wires; w++)
            mean[i] += view->wire[w] * load[1 + w];
        if (kind->n_busy > kind->n_wires)
            mean[i] += view->ranks * load[1 + kind->n_wires];
    }
}
