#include "compose/planner/loads.h"

#include "compose/cost/pipeline.h"

#include <string.h>

static int32_t part_of_shaped(const mc_load_kind_t *kind, int32_t s)
{
    return 1 + kind->n_busy + MC_SHAPED_PARTS * s;
}

/* Are the bytes of some dimension that uses the wire the ranks' own time too? */
static bool any_own(const mc_priced_t *graph, const mc_links_t *links, int32_t wire)
{
    bool any = false;
    for (int32_t i = 0; i < graph->graph.n; i++)
        any = any ||
              (graph->wire_of[i] == wire && mc_link_is_ranks_own(&links->dim[graph->graph.dim[i]]));
    return any;
}

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

mc_load_kind_t mc_load_kind(const mc_priced_t *graph, const mc_links_t *links)
{
    mc_load_kind_t kind = {.n_wires = graph->n_wires,
                           .n_busy = graph->n_wires + graph->ranks_apart};
    for (int32_t w = 0; w < graph->n_wires; w++) {
        const mc_link_t *const link = &links->dim[graph->wire[w]];
        if (!graph->shaped[w])
            continue;
        kind.shaped[kind.n_shaped].wire = w;
        kind.shaped[kind.n_shaped].beta = link->beta;
        kind.shaped[kind.n_shaped].burst = link->burst * link->beta;
        kind.n_shaped++;
    }
    kind.n = part_of_shaped(&kind, kind.n_shaped);
    for (int32_t s = 0; s < kind.n_shaped; s++)
        if (any_own(graph, links, kind.shaped[s].wire))
            kind.shaped[s].own = kind.n++;
    kind.n_views = (graph->ranks_apart ? MC_TURNS : 1) * (kind.n_wires > 1 ? kind.n_wires + 1 : 1);
    kind.n_means = (kind.n_shaped > 0 ? 2 : 1) * kind.n_views;
    for (int32_t i = 0; i < kind.n_views; i++)
        kind.view[i] = view_of(&kind, i);
    return kind;
}

void mc_load_of(const mc_load_kind_t *kind, const mc_priced_t *graph, const mc_priced_step_t *step,
                double bytes, uint32_t segments, double *load)
{
    const mc_price_t *const price = &graph->price[step->price];
    const double all = bytes * mc_ratio_value(step->share), piece = all / segments;
    const double rest = segments - 1.0;
    memset(load, 0, sizeof *load * (size_t)kind->n);
    load[0] = mc_linear_at(price->once, piece);
    for (int32_t i = 0; i < kind->n_busy; i++)
        load[1 + i] = rest * mc_linear_at(price->busy[i], piece);
    for (int32_t s = 0; s < kind->n_shaped && bytes > 0; s++) {
        const mc_shaped_t *const shaped = &price->shaped[kind->shaped[s].wire];
        double *const part = load + part_of_shaped(kind, s);
        part[0] = mc_linear_at(shaped->once, piece);
        part[1] = rest * mc_linear_at(shaped->busy, piece);
        part[2] = shaped->carried * all * kind->shaped[s].beta;
        if (kind->shaped[s].own)
            load[kind->shaped[s].own] = rest * mc_linear_at(shaped->own, piece);
    }
}

int32_t mc_load_wire(const mc_load_kind_t *kind, const mc_priced_t *graph,
                     const mc_priced_step_t *step, double bytes)
{
    const mc_price_t *const price = &graph->price[step->price];
    const double all = bytes * mc_ratio_value(step->share);
    double busy[MC_MAX_DIMS];
    int32_t busiest;
    for (int32_t w = 0; w < kind->n_wires; w++)
        busy[w] = mc_linear_at(mc_linear_add(price->busy[w], price->shaped[w].busy), all);
    mc_pipeline_busiest(busy, kind->n_wires, &busiest);
    return busiest;
}

/* The part of a shaped wire's bytes that passes after the burst. */
static double past_burst(const mc_load_kind_t *kind, int32_t s, const double *load)
{
    const double carried = load[part_of_shaped(kind, s) + 2], burst = kind->shaped[s].burst;
    return carried > burst ? 1 - burst / carried : 0;
}

double mc_load_price(const mc_load_kind_t *kind, const double *load, const double *all)
{
    double busy[MC_MAX_DIMS + 1] = {0}, fill = load[0];
    int32_t busiest;
    for (int32_t i = 0; i < kind->n_busy; i++)
        busy[i] = load[1 + i];
    for (int32_t s = 0; s < kind->n_shaped; s++) {
        const double *const part = load + part_of_shaped(kind, s);
        const double past = past_burst(kind, s, all);
        fill += past * part[0];
        busy[kind->shaped[s].wire] += past * part[1];
        if (kind->shaped[s].own)
            busy[kind->n_wires] += past * load[kind->shaped[s].own];
    }
    const double most = mc_pipeline_busiest(busy, kind->n_wires, &busiest);
    return fill + mc_busy_both(most, busy[kind->n_wires]);
}

static double above(double a, double b)
{
    return a > b ? a - b : 0;
}

/* Each second that a wire or the ranks are busier adds at most a second to the price, so the fill that `a`
 * saves must cover these. No bound exists if `a` carries more over a shaped wire, because then the bytes
 * of other phases profit less from the burst. */
bool mc_load_cheaper(const mc_load_kind_t *kind, const double *a, const double *b, double margin)
{
    double more[MC_MAX_DIMS] = {0}, most = 0, least = b[0] - a[0] - margin;
    const int32_t n_wires = kind->n_wires;
    if (least < 0)
        return false;
    for (int32_t w = 0; w < n_wires; w++) {
        more[w] = above(a[1 + w], b[1 + w]);
        if (more[w] > least)
            return false;
    }
    if (kind->n_busy > n_wires)
        least -= above(a[1 + n_wires], b[1 + n_wires]);
    for (int32_t s = 0; s < kind->n_shaped && least >= 0; s++) {
        const double *const x = a + part_of_shaped(kind, s), *const y = b + part_of_shaped(kind, s);
        const int32_t own = kind->shaped[s].own;
        if (x[2] > y[2])
            return false;
        more[kind->shaped[s].wire] += above(x[1], y[1]);
        least -= above(x[0], y[0]) + (own ? above(a[own], b[own]) : 0);
    }
    for (int32_t w = 0; w < n_wires; w++)
        most = more[w] > most ? more[w] : most;
    return most <= least;
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static double plain_mean(const mc_load_kind_t *kind, const mc_load_view_t *view, const double *load)
{
    double sum = load[0];
    for (int32_t w = 0; w < kind->n_wires; w++)
        sum += view->wire[w] * load[1 + w];
    return kind->n_busy > kind->n_wires ? sum + view->ranks * load[1 + kind->n_wires] : sum;
}

static double past_burst_mean(const mc_load_kind_t *kind, const mc_load_view_t *view,
                              const double *load, const double *least)
{
    double sum = 0;
    for (int32_t s = 0; s < kind->n_shaped; s++) {
        const double *const part = load + part_of_shaped(kind, s);
        const double own = kind->shaped[s].own ? load[kind->shaped[s].own] : 0;
        sum += past_burst(kind, s, least) *
               (part[0] + view->wire[kind->shaped[s].wire] * part[1] + view->ranks * own);
    }
    return sum;
}

/* All shaped bytes, before one burst is taken off (mc_load_offsets). Of what is carried, 1 / segments is in
 * the fill and the rest in the busy time, and one burst is taken off in this proportion. Bytes that take
 * longer than what is carried count no more than that, because a burst takes off more of them. */
static double whole_mean(const mc_load_kind_t *kind, const mc_load_view_t *view, const double *load,
                         uint32_t segments)
{
    const double once = 1.0 / segments, rest = 1 - once;
    double sum = 0;
    for (int32_t s = 0; s < kind->n_shaped; s++) {
        const double *const part = load + part_of_shaped(kind, s);
        const double own = kind->shaped[s].own ? load[kind->shaped[s].own] : 0;
        sum += lesser(part[0], once * part[2]) +
               view->wire[kind->shaped[s].wire] * lesser(part[1], rest * part[2]) +
               view->ranks * lesser(own, rest * part[2]);
    }
    return sum;
}

void mc_load_means(const mc_load_kind_t *kind, const double *load, const double *least,
                   uint32_t segments, double *mean)
{
    for (int32_t i = 0; i < kind->n_views; i++) {
        const mc_load_view_t *const view = &kind->view[i];
        const double plain = plain_mean(kind, view, load);
        mean[i] = plain + past_burst_mean(kind, view, load, least);
        if (kind->n_shaped > 0)
            mean[kind->n_views + i] = plain + whole_mean(kind, view, load, segments);
    }
}

void mc_load_offsets(const mc_load_kind_t *kind, uint32_t segments, double *mean)
{
    const double once = 1.0 / segments, rest = 1 - once;
    for (int32_t i = 0; i < kind->n_means; i++) {
        const mc_load_view_t *const view = &kind->view[i % kind->n_views];
        mean[i] = 0;
        for (int32_t s = 0; s < kind->n_shaped && i >= kind->n_views; s++) {
            const double ranks = kind->shaped[s].own ? view->ranks : 0;
            const double weight = view->wire[kind->shaped[s].wire] + ranks;
            mean[i] -= kind->shaped[s].burst * (once + weight * rest);
        }
    }
}
