#include "compose/price/sides.h"

#include <math.h>

static double at(mc_piece_seconds_t s, double bytes)
{
    return s.fixed + s.per_byte * bytes;
}

static mc_piece_seconds_t both(mc_piece_seconds_t a, mc_piece_seconds_t b)
{
    return (mc_piece_seconds_t){a.fixed + b.fixed, a.per_byte + b.per_byte};
}

static mc_piece_parts_t parts_of(const mc_term_t *term, const mc_link_t *link)
{
    mc_term_t bare = *term;
    bare.headers = 0;
    return (mc_piece_parts_t){
        mc_term_seconds(&bare, link, 0),
        term->headers * link->header,
        mc_ratio_value(term->beta) + mc_ratio_value(term->incast) * link->incast,
        mc_ratio_value(term->volume) * link->bus,
        mc_ratio_value(term->gamma) * link->gamma,
    };
}

static mc_piece_seconds_t seconds_of_parts(const mc_piece_parts_t *parts, const mc_link_t *link)
{
    return (mc_piece_seconds_t){parts->fixed + parts->headers * link->beta,
                                parts->wire * link->beta + parts->bus + parts->sums};
}

/* Time of a link (*held) and of its ranks (*own), as in mc_term_busy. In the textbook's model the ranks'
 * messages and sums are counted besides, as their own time over all dimensions bounds the pace. */
static void busy_of_parts(const mc_piece_parts_t *parts, const mc_link_t *link,
                          mc_piece_seconds_t *held, mc_piece_seconds_t *own)
{
    const mc_piece_seconds_t all = seconds_of_parts(parts, link);
    const mc_piece_seconds_t bytes = {parts->headers * link->beta,
                                      parts->wire * link->beta + parts->bus};
    const bool textbook = link->gap == link->alpha;
    *held = textbook || link->pulled ? all : bytes;
    *own = link->pulled && !textbook
               ? all
               : (mc_piece_seconds_t){parts->fixed,
                                      textbook ? parts->sums : all.per_byte - bytes.per_byte};
}

static void add_course(mc_course_t *course, const mc_phase_cost_t *cost, const mc_links_t *links)
{
    const int32_t i = course->n++;
    course->phase[i].n = 0;
    for (int32_t d = 0; d < links->ndims; d++) {
        const mc_term_t *const once = &cost->once.dim[d], *const busy = &cost->busy.dim[d];
        course->carried[d] = mc_ratio_add(course->carried[d], busy->beta);
        /* on a merged line an inner dimension may have messages, but no round charged to it */
        if (once->alpha.num == 0 && once->messages == 0)
            continue;
        const int32_t k = course->phase[i].n++;
        course->phase[i].dim[k] = d;
        course->phase[i].once[k] = parts_of(once, &links->dim[d]);
        course->phase[i].busy[k] = parts_of(busy, &links->dim[d]);
    }
}

void mc_course_of(const mc_strategy_t *s, int32_t side, const mc_mesh_t *mesh,
                  const mc_links_t *links, int32_t root, mc_course_t *course)
{
    course->n = 0;
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        course->carried[d] = (mc_ratio_t){0, 1};
    for (int32_t i = mc_side_first(s, side); i < mc_side_end(s, side); i++) {
        const mc_phase_cost_t cost = mc_strategy_phase_cost(s, mesh, links, root, i);
        add_course(course, &cost, links);
    }
}

static void add_phase(mc_flow_t *flow, const mc_course_t *course, const mc_links_t *links)
{
    const int32_t i = flow->n++;
    for (int32_t k = 0; k < course->phase[i].n; k++) {
        const int32_t d = course->phase[i].dim[k], wire = mc_links_wire(links, d);
        const mc_link_t *const link = &links->dim[d];
        const mc_piece_seconds_t once = seconds_of_parts(&course->phase[i].once[k], link);
        const mc_piece_seconds_t busy = seconds_of_parts(&course->phase[i].busy[k], link);
        mc_piece_seconds_t held, own;
        busy_of_parts(&course->phase[i].busy[k], link, &held, &own);
        flow->phase[i].links |= 1u << wire;
        flow->once = both(flow->once, once);
        flow->phase[i].once = both(flow->phase[i].once, once);
        flow->phase[i].busy = both(flow->phase[i].busy, busy);
        flow->busy[wire] = both(flow->busy[wire], held);
        flow->own = both(flow->own, own);
        flow->apart = flow->apart || link->gap != link->alpha;
    }
}

mc_flow_t mc_flow_on(const mc_course_t *course, const mc_links_t *links)
{
    mc_flow_t flow = {0};
    while (flow.n < course->n)
        add_phase(&flow, course, links);
    return flow;
}

static mc_flow_t flow_of(const mc_strategy_t *s, int32_t side, const mc_mesh_t *mesh,
                         const mc_links_t *links, int32_t root)
{
    mc_course_t course;
    mc_course_of(s, side, mesh, links, root, &course);
    return mc_flow_on(&course, links);
}

/* Starts a phase when its side is ready and its links are free. Updates both times. */
static void run_phase(const mc_flow_t *flow, int32_t i, double bytes, double *ready,
                      double free_at[MC_MAX_DIMS])
{
    double start = *ready;
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        if (flow->phase[i].links & 1u << d && free_at[d] > start)
            start = free_at[d];
    const double released = start + at(flow->phase[i].busy, bytes);
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        if (flow->phase[i].links & 1u << d)
            free_at[d] = released;
    *ready = start + at(flow->phase[i].once, bytes);
}

/* Seconds of the first segment of each side. */
static double run_both(const mc_flow_t *a, const mc_flow_t *b, double bytes)
{
    double ready[2] = {0}, free_at[MC_MAX_DIMS] = {0};
    for (int32_t i = 0; i < a->n || i < b->n; i++) {
        if (i < a->n)
            run_phase(a, i, bytes, &ready[0], free_at);
        if (i < b->n)
            run_phase(b, i, bytes, &ready[1], free_at);
    }
    return ready[0] > ready[1] ? ready[0] : ready[1];
}

mc_pace_t mc_flows_every(const mc_flow_t *a, const mc_flow_t *b, double bytes, double *ranks)
{
    mc_pace_t pace = {.every = 0};
    const double own = at(both(a->own, b->own), bytes);
    for (int32_t d = 0; d < MC_MAX_DIMS; d++) {
        const double busy = at(both(a->busy[d], b->busy[d]), bytes);
        if (busy > pace.every) {
            pace.every = busy;
            pace.busiest = d;
        }
    }
    const double link = pace.every;
    if (own > link)
        pace.busiest = -1;
    pace.every = a->apart || b->apart ? mc_busy_both(link, own) : own > link ? own : link;
    *ranks = own;
    return pace;
}

static mc_pace_t pace_of(const mc_flow_t *a, const mc_flow_t *b, double bytes)
{
    double own;
    mc_pace_t pace = mc_flows_every(a, b, bytes, &own);
    pace.fill = run_both(a, b, bytes);
    pace.fill = own > pace.fill ? own : pace.fill;
    return pace;
}

/* The fill is replaced by the longer side's time alone, which it is never less than. */
double mc_flows_least(const mc_flow_t *a, const mc_flow_t *b, uint32_t segments, double n)
{
    const double piece = n / segments, rounded = 1e-9;
    double own;
    const mc_pace_t pace = mc_flows_every(a, b, piece, &own);
    const double fill = fmax(own, fmax(at(a->once, piece), at(b->once, piece)));
    return (fill + (segments / 2 - 1) * pace.every) * (1 - rounded);
}

double mc_flows_seconds(const mc_flow_t *a, const mc_flow_t *b, uint32_t segments, double n)
{
    const mc_pace_t pace = pace_of(a, b, n / segments);
    return mc_cost_rounded(pace.fill + (segments / 2 - 1) * pace.every);
}

mc_pace_t mc_sides_pace(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                        const mc_links_t *links, int32_t root, double n)
{
    const mc_flow_t a = flow_of(strategy, 0, mesh, links, root);
    const mc_flow_t b = flow_of(strategy, 1, mesh, links, root);
    return pace_of(&a, &b, n / strategy->segments);
}

double mc_sides_seconds(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                        const mc_links_t *links, int32_t root, double n)
{
    const mc_flow_t a = flow_of(strategy, 0, mesh, links, root);
    const mc_flow_t b = flow_of(strategy, 1, mesh, links, root);
    return mc_flows_seconds(&a, &b, strategy->segments, n);
}
