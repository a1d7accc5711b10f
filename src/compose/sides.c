#include "compose/sides.h"

#include "compose/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seconds for a piece: fixed + per_byte * bytes. */
typedef struct {
    double fixed, per_byte;
} seconds_t;

/* A side, priced. */
typedef struct {
    int32_t n;
    struct {
        seconds_t once, busy;
        unsigned links; /* a bit for each wire it sends over */
    } phase[MC_MAX_PHASES];
    seconds_t busy[MC_MAX_DIMS]; /* of all phases, by wire */
    seconds_t once;              /* of all phases, one after another */
    seconds_t own;               /* messages and sums of all phases */
    bool apart;                  /* of links whose gap is known: mc_busy_t */
} flow_t;

static double at(seconds_t s, double bytes)
{
    return s.fixed + s.per_byte * bytes;
}

static seconds_t both(seconds_t a, seconds_t b)
{
    return (seconds_t){a.fixed + b.fixed, a.per_byte + b.per_byte};
}

static seconds_t of_term(const mc_term_t *term, const mc_link_t *link)
{
    const mc_term_t bytes_only = mc_term_bytes(term);
    return (seconds_t){mc_term_seconds(term, link, 0), mc_term_seconds(&bytes_only, link, 1)};
}

/* What a link is busy with, and its ranks; by the textbook, where that is one, they have messages and
 * sums of their own all the same. */
static void busy_of_term(const mc_term_t *term, const mc_link_t *link, seconds_t *held,
                         seconds_t *own)
{
    const mc_term_t bytes_only = mc_term_bytes(term);
    const mc_term_t no_wire = {.alpha = term->alpha,
                               .beta = {0, 1},
                               .gamma = term->gamma,
                               .row = term->row,
                               .incast = {0, 1},
                               .messages = term->messages,
                               .volume = {0, 1},
                               .headers = 0};
    const mc_busy_t fixed = mc_term_busy(term, link, 0);
    const mc_busy_t per_byte = mc_term_busy(&bytes_only, link, 1);
    *held = (seconds_t){fixed.link, per_byte.link};
    *own =
        link->gap == link->alpha ? of_term(&no_wire, link) : (seconds_t){fixed.own, per_byte.own};
}

static void add_phase(flow_t *flow, const mc_phase_cost_t *cost, const mc_links_t *links)
{
    const int32_t i = flow->n++;
    for (int32_t d = 0; d < links->ndims; d++) {
        const mc_term_t *const once = &cost->once.dim[d], *const busy = &cost->busy.dim[d];
        if (once->alpha.num == 0)
            continue;
        const int32_t wire = mc_links_wire(links, d);
        seconds_t held, own;
        busy_of_term(busy, &links->dim[d], &held, &own);
        flow->phase[i].links |= 1u << wire;
        const seconds_t taken = of_term(once, &links->dim[d]);
        flow->once = both(flow->once, taken);
        flow->phase[i].once = both(flow->phase[i].once, taken);
        flow->phase[i].busy = both(flow->phase[i].busy, of_term(busy, &links->dim[d]));
        flow->busy[wire] = both(flow->busy[wire], held);
        flow->own = both(flow->own, own);
        flow->apart = flow->apart || links->dim[d].gap != links->dim[d].alpha;
    }
}

static flow_t flow_of(const mc_strategy_t *s, int32_t side, const mc_mesh_t *mesh,
                      const mc_links_t *links, int32_t root)
{
    flow_t flow = {0};
    for (int32_t i = mc_side_first(s, side); i < mc_side_end(s, side); i++) {
        const mc_phase_cost_t cost = mc_strategy_phase_cost(s, mesh, links, root, i);
        add_phase(&flow, &cost, links);
    }
    return flow;
}

/* When a phase can start, and what it leaves behind. */
static void run_phase(const flow_t *flow, int32_t i, double bytes, double *ready,
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

/* One segment of each side, nothing before them. */
static double run_both(const flow_t *a, const flow_t *b, double bytes)
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

/* Without the fill. */
static mc_pace_t every_of(const flow_t *a, const flow_t *b, double bytes, double *ranks)
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

static mc_pace_t pace_of(const flow_t *a, const flow_t *b, double bytes)
{
    double own;
    mc_pace_t pace = every_of(a, b, bytes, &own);
    pace.fill = run_both(a, b, bytes);
    pace.fill = own > pace.fill ? own : pace.fill;
    return pace;
}

/* No fill is shorter than its longer side by itself. */
static double least_seconds(const flow_t *a, const flow_t *b, uint32_t segments, double n)
{
    const double piece = n / segments, rounded = 1e-9;
    double own;
    const mc_pace_t pace = every_of(a, b, piece, &own);
    const double fill = fmax(own, fmax(at(a->once, piece), at(b->once, piece)));
    return (fill + (segments / 2 - 1) * pace.every) * (1 - rounded);
}

static double seconds_of(const flow_t *a, const flow_t *b, uint32_t segments, double n)
{
    const mc_pace_t pace = pace_of(a, b, n / segments);
    return mc_cost_rounded(pace.fill + (segments / 2 - 1) * pace.every);
}

mc_pace_t mc_sides_pace(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                        const mc_links_t *links, int32_t root, double n)
{
    const flow_t a = flow_of(strategy, 0, mesh, links, root);
    const flow_t b = flow_of(strategy, 1, mesh, links, root);
    return pace_of(&a, &b, n / strategy->segments);
}

double mc_sides_seconds(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                        const mc_links_t *links, int32_t root, double n)
{
    const flow_t a = flow_of(strategy, 0, mesh, links, root);
    const flow_t b = flow_of(strategy, 1, mesh, links, root);
    return seconds_of(&a, &b, strategy->segments, n);
}

/* Candidates ------------------------------------------------------------------------------------- */

/* Orders of the dimensions that are longer than 1: rotations, and those of the reverse. */
enum { MAX_ORDERS = 2 * MC_MAX_DIMS };

typedef struct {
    mc_priced_t *graph;
    meshcoll_collective_t collective;
    const mc_mesh_t *mesh;
    const mc_links_t *links;
    const mc_planner_query_t *query;
    double
        limit; /* seconds of the best of one side; what is dearer is not asked for where one is */
    int32_t n_long, long_dim[MC_MAX_DIMS];
    mc_strategy_t path[MAX_ORDERS]; /* of one side, the one after which the others are made first */
    flow_t flow[MAX_ORDERS];
    int32_t n_paths;
    bool many_messages; /* the ranks' own time limits a pair: fewer messages may be better */
    mc_ranked_t *found;
    uint32_t n_found;
} pairing_t;

enum { MAX_BASES = 3, MOST_FOUND = MAX_BASES * MAX_ORDERS * (MAX_ORDERS - 1) };

static void find_long(pairing_t *p)
{
    /* fold comes first and last on both sides */
    const int32_t n = p->mesh->ragged ? MC_RAGGED_FOLD : p->mesh->ndims;
    for (int32_t d = 0; d < n; d++)
        if (p->mesh->dim[d].extent > 1)
            p->long_dim[p->n_long++] = d;
}

/* `to[d]`: the dimension that takes the place of d. */
static void order_of(const pairing_t *p, int32_t order, int32_t to[MC_MAX_DIMS])
{
    const int32_t n = p->n_long, turn = order % n;
    const bool reversed = order >= n;
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        to[d] = d;
    for (int32_t i = 0; i < n; i++) {
        const int32_t k = (i + turn) % n;
        to[p->long_dim[i]] = p->long_dim[reversed ? n - 1 - k : k];
    }
}

/* Merged dimensions follow each other in the mesh: not every order keeps them together. */
static bool reorder(const mc_strategy_t *base, const mc_mesh_t *mesh, const int32_t to[MC_MAX_DIMS],
                    mc_strategy_t *path)
{
    mc_strategy_t s = *base;
    for (int32_t i = 0; i < s.n_phases; i++) {
        const mc_dims_t dims = base->phase[i].dims;
        int32_t first = MC_MAX_DIMS, last = -1;
        for (int32_t d = dims.first; d < dims.first + dims.count; d++) {
            first = to[d] < first ? to[d] : first;
            last = to[d] > last ? to[d] : last;
        }
        if (last - first + 1 != dims.count)
            return false;
        s.phase[i].dims = (mc_dims_t){first, last - first + 1};
    }
    if (mc_strategy_check(&s, mesh))
        return false;
    *path = s;
    return true;
}

/* The same path in all orders that it can take. */
static void find_paths(pairing_t *p, const mc_strategy_t *base)
{
    const int32_t orders = p->n_long > 2 ? 2 * p->n_long : p->n_long;
    p->n_paths = 0;
    for (int32_t order = 0; order < orders; order++) {
        int32_t to[MC_MAX_DIMS];
        mc_strategy_t path;
        bool known = false;
        order_of(p, order, to);
        if (!reorder(base, p->mesh, to, &path))
            continue;
        for (int32_t i = 0; i < p->n_paths && !known; i++)
            known = mc_strategy_equal(&path, &p->path[i]);
        if (known)
            continue;
        p->path[p->n_paths] = path;
        p->flow[p->n_paths++] = flow_of(&path, 0, p->mesh, p->links, p->query->root);
    }
}

static bool join(const mc_strategy_t *a, const mc_strategy_t *b, mc_strategy_t *pair)
{
    mc_strategy_t s = *a;
    if (a->n_phases == 0 || b->n_phases == 0)
        return false;
    s.second = a->n_phases;
    for (int32_t i = 0; i < b->n_phases; i++)
        s.phase[s.n_phases++] = b->phase[i];
    *pair = s;
    return true;
}

static bool is_found(const pairing_t *p, const mc_strategy_t *pair)
{
    for (uint32_t i = 0; i < p->n_found; i++)
        if (mc_strategy_equal(&p->found[i].strategy, pair))
            return true;
    return false;
}

/* Does a link have more to carry than can be worth it, however many segments there are? */
static bool hopeless(const pairing_t *p, const flow_t *a, const flow_t *b)
{
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        if ((a->busy[d].per_byte + b->busy[d].per_byte) * p->query->bytes / 2 > p->limit)
            return true;
    return false;
}

/* The pair's flows; where bursts pass they depend on what both carry together. */
static void flows_of(const pairing_t *p, int32_t a, int32_t b, const mc_strategy_t *pair,
                     flow_t flow[2])
{
    flow[0] = p->flow[a];
    flow[1] = p->flow[b];
    if (!mc_links_burst(p->links))
        return;
    const mc_links_t left =
        mc_strategy_links(pair, p->mesh, p->links, p->query->root, p->query->bytes);
    for (int32_t side = 0; side < 2; side++)
        flow[side] = flow_of(pair, side, p->mesh, &left, p->query->root);
}

/* Keeps the pair with its best number of segments. */
static void try_pair(pairing_t *p, int32_t a, int32_t b)
{
    mc_ranked_t best = {.seconds = INFINITY};
    flow_t flow[2];
    if (!join(&p->path[a], &p->path[b], &best.strategy))
        return;
    flows_of(p, a, b, &best.strategy, flow);
    if (hopeless(p, &flow[0], &flow[1]))
        return;
    double own;
    if (every_of(&flow[0], &flow[1], p->query->bytes / 2, &own).busiest < 0)
        p->many_messages = true;
    for (uint32_t k = 2; k <= p->query->max_segments && k <= MC_MOST_SEGMENTS; k *= 2) {
        const double least = least_seconds(&flow[0], &flow[1], k, p->query->bytes);
        if (least >= best.seconds || (p->query->most == 1 && least > p->limit))
            continue;
        const double seconds = seconds_of(&flow[0], &flow[1], k, p->query->bytes);
        if (seconds < best.seconds) {
            best.seconds = seconds;
            best.strategy.segments = k;
        }
    }
    if (best.strategy.segments >= 2 && !is_found(p, &best.strategy))
        p->found[p->n_found++] = best;
}

static void try_base(pairing_t *p, const mc_strategy_t *base)
{
    find_paths(p, base);
    for (int32_t a = 0; a < p->n_paths; a++)
        for (int32_t b = 0; b < p->n_paths; b++)
            if (a != b)
                try_pair(p, a, b);
}

/* A collective that has no torus is not cut into two sides. */
static bool has_torus(meshcoll_collective_t collective)
{
    for (int32_t i = 0; i < mc_named_count(); i++)
        if (mc_named_at(i)->collective == collective && strcmp(mc_named_at(i)->name, "torus") == 0)
            return true;
    return false;
}

static int try_torus(pairing_t *p)
{
    mc_strategy_t torus;
    const int status = mc_strategy_named("torus", p->collective, p->mesh, &torus);
    if (status)
        return status;
    torus.n_phases = torus.second;
    torus.second = 0;
    torus.segments = 1;
    try_base(p, &torus);
    return MESHCOLL_OK;
}

/* The cheapest path in one segment for that part of the vector, with that part of the bursts. */
static int try_cheapest(pairing_t *p, double part)
{
    mc_planner_query_t one = *p->query;
    mc_links_t links = *p->links;
    mc_ranked_t *ranked;
    uint32_t n, considered;
    one.bytes *= part;
    one.max_segments = 1;
    for (int32_t d = 0; d < links.ndims; d++)
        links.dim[d].burst *= part;
    const int status =
        mc_search(p->graph, p->collective, &links, &one, 1, &ranked, &n, &considered);
    if (status)
        return status;
    if (n > 0)
        try_base(p, &ranked[0].strategy);
    free(ranked);
    return MESHCOLL_OK;
}

/* Where a pipeline keeps its link as busy as any strategy must, what is left to win is less than the
 * time of a segment: a network much slower than the links inside its boxes. */
static bool is_limited(const mc_ranked_t *best, double bound)
{
    const uint32_t segments = best->strategy.segments;
    return best->seconds <= bound ||
           (segments > 2 && best->seconds - bound < best->seconds / segments);
}

int mc_sides_candidates(mc_priced_t *graph, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                        const mc_links_t *links, const mc_planner_query_t *query,
                        const mc_ranked_t *best, mc_ranked_t **ranked, uint32_t *n)
{
    pairing_t p = {.graph = graph,
                   .collective = collective,
                   .mesh = mesh,
                   .links = links,
                   .query = query,
                   .limit = best->seconds};
    find_long(&p);
    *ranked = NULL;
    *n = 0;
    if (p.n_long < 2 || query->max_segments < 2 || !has_torus(collective) ||
        is_limited(best, mc_lower_bound(collective, mesh, links, query->bytes)))
        return MESHCOLL_OK;
    p.found = malloc(MOST_FOUND * sizeof *p.found);
    if (!p.found)
        return mc_fail_memory("strategies of two sides");
    int status = try_torus(&p);
    if (!status)
        status = try_cheapest(&p, 1.0 / 2);
    if (!status && p.many_messages)
        status = try_cheapest(&p, 1.0 / 4); /* which weighs messages twice as much */
    if (status || p.n_found == 0) {
        free(p.found);
        return status;
    }
    *ranked = p.found;
    *n = p.n_found;
    return MESHCOLL_OK;
}
