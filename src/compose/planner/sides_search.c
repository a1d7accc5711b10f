#include "compose/planner/sides_search.h"

#include "compose/planner/search/search.h"
#include "compose/price/bound.h"
#include "compose/price/sides.h"
#include "compose/price/strategy_cost.h"

#include <math.h>
#include <stdlib.h>

/* A path that may be a side of a pair. */
typedef struct {
    mc_strategy_t path; /* a strategy of one side */
    mc_flow_t flow;
} side_t;

typedef struct {
    mc_priced_t *graph;
    meshcoll_collective_t collective;
    const mc_mesh_t *mesh;
    const mc_links_t *links;
    const mc_planner_query_t *query;
    double limit; /* seconds of the incumbent, the cheapest strategy of one side */
    int32_t n_long, long_dim[MC_MAX_DIMS]; /* dimensions longer than 1 */
    side_t *side; /* the current base path in all orders; the first is the base itself */
    int32_t n_sides;
    bool many_messages; /* the ranks' own time limits a pair, so fewer messages may be better */
    mc_ranked_t *found;
    uint32_t n_found;
} pairing_t;

enum { MAX_BASES = 3 };

static void find_long(pairing_t *p)
{
    /* fold is not reordered: on both sides it is first and last */
    const int32_t n = p->mesh->ragged ? MC_RAGGED_FOLD : p->mesh->ndims;
    for (int32_t d = 0; d < n; d++)
        if (p->mesh->dim[d].extent > 1)
            p->long_dim[p->n_long++] = d;
}

/* Orders of the dimensions longer than 1: the rotations, and the rotations of the reverse order. */
static int32_t n_orders(const pairing_t *p)
{
    return p->n_long > 2 ? 2 * p->n_long : p->n_long;
}

/* to[d]: the dimension that replaces d in this order. */
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

/* Returns false if the order separates merged dimensions, which must be adjacent in the mesh, or gives no
 * valid strategy. */
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

static bool is_known(const pairing_t *p, const mc_strategy_t *path)
{
    for (int32_t i = 0; i < p->n_sides; i++)
        if (mc_strategy_equal(path, &p->side[i].path))
            return true;
    return false;
}

/* Finds the sides of a base path: the path in all orders of dimensions that are valid. */
static void find_sides(pairing_t *p, const mc_strategy_t *base)
{
    p->n_sides = 0;
    for (int32_t order = 0; order < n_orders(p); order++) {
        int32_t to[MC_MAX_DIMS];
        side_t *const side = &p->side[p->n_sides];
        order_of(p, order, to);
        if (!reorder(base, p->mesh, to, &side->path) || is_known(p, &side->path))
            continue;
        side->flow = mc_flow_of(&side->path, 0, p->mesh, p->links, p->query->root);
        p->n_sides++;
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

/* Is some link busy for longer than the incumbent takes, whatever the number of segments? */
static bool hopeless(const pairing_t *p, const mc_flow_t *a, const mc_flow_t *b)
{
    for (int32_t d = 0; d < MC_MAX_DIMS; d++)
        if ((a->busy[d].per_byte + b->busy[d].per_byte) * p->query->bytes / 2 > p->limit)
            return true;
    return false;
}

/* The cheapest number of segments. Returns its seconds, or INFINITY if none can beat the incumbent and only
 * the cheapest strategy is wanted. */
static double best_segments(const pairing_t *p, const mc_strategy_t *pair, const mc_flow_t *a,
                            const mc_flow_t *b, uint32_t *segments)
{
    const mc_planner_query_t *const query = p->query;
    const double limit = query->most == 1 ? p->limit : INFINITY;
    const uint32_t needed = query->pacing ? mc_strategy_needed(pair, p->mesh, p->links, query->root,
                                                               query->bytes, query->pacing)
                                          : 1;
    const uint32_t most = needed > query->max_segments ? needed : query->max_segments;
    double best = INFINITY;
    for (uint32_t k = needed > 2 ? needed : 2; k <= most && k <= MC_MOST_SEGMENTS; k *= 2) {
        const double least = mc_flows_least(a, b, k, query->bytes);
        if (least >= best || least > limit)
            continue;
        const double seconds = mc_flows_seconds(a, b, k, query->bytes);
        if (seconds < best) {
            best = seconds;
            *segments = k;
        }
    }
    return best;
}

static void try_pair(pairing_t *p, const side_t *a, const side_t *b)
{
    mc_ranked_t pair;
    double own;
    if (!join(&a->path, &b->path, &pair.strategy))
        return;
    if (hopeless(p, &a->flow, &b->flow))
        return;
    if (mc_flows_every(&a->flow, &b->flow, p->query->bytes / 2, &own).busiest < 0)
        p->many_messages = true;
    pair.seconds = best_segments(p, &pair.strategy, &a->flow, &b->flow, &pair.strategy.segments);
    if (pair.seconds < INFINITY && !is_found(p, &pair.strategy))
        p->found[p->n_found++] = pair;
}

static void try_base(pairing_t *p, const mc_strategy_t *base)
{
    find_sides(p, base);
    for (int32_t a = 0; a < p->n_sides; a++)
        for (int32_t b = 0; b < p->n_sides; b++)
            if (a != b)
                try_pair(p, &p->side[a], &p->side[b]);
}

/* Tries the first side of the named strategy. */
static int try_named(pairing_t *p)
{
    const mc_named_t *const named = mc_named_two_sided(p->collective);
    mc_strategy_t side;
    const int status = mc_strategy_named(named->name, p->collective, p->mesh, &side);
    if (status)
        return status;
    side.n_phases = side.second;
    side.second = 0;
    side.segments = 1;
    try_base(p, &side);
    return MESHCOLL_OK;
}

/* Tries the cheapest path, in one segment, for `part` of the vector. */
static int try_cheapest(pairing_t *p, double part)
{
    mc_planner_query_t one = *p->query;
    mc_ranked_t *ranked;
    uint32_t n, considered;
    one.bytes *= part;
    one.max_segments = 1;
    one.pacing = NULL;
    const int status = mc_search(p->graph, p->links, &one, 1, &ranked, &n, &considered);
    if (status)
        return status;
    if (n > 0)
        try_base(p, &ranked[0].strategy);
    free(ranked);
    return MESHCOLL_OK;
}

/* Is the incumbent within the time of a segment of the lower bound? It is if a pipeline keeps its busiest
 * link as busy as any strategy must, as with a network much slower than the links inside boxes. */
static bool is_limited(const mc_ranked_t *best, double bound)
{
    const uint32_t segments = best->strategy.segments;
    return best->seconds <= bound ||
           (segments > 2 && best->seconds - bound < best->seconds / segments);
}

/* The base paths: that of the named strategy, the cheapest for half of the vector, and, if messages limit those pairs,
 * the cheapest for a quarter, which weighs messages twice. */
static int try_bases(pairing_t *p)
{
    int status = try_named(p);
    if (!status)
        status = try_cheapest(p, 1.0 / 2);
    if (!status && p->many_messages)
        status = try_cheapest(p, 1.0 / 4);
    return status;
}

int mc_sides_search(mc_priced_t *graph, meshcoll_collective_t collective, const mc_mesh_t *mesh,
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
    if (p.n_long < 2 || query->max_segments < 2 || !mc_named_two_sided(collective) ||
        is_limited(best, mc_lower_bound(collective, mesh, links, query->bytes)))
        return MESHCOLL_OK;
    const size_t orders = (size_t)n_orders(&p);
    p.side = malloc(orders * sizeof *p.side);
    p.found = malloc(MAX_BASES * orders * (orders - 1) * sizeof *p.found);
    const int status =
        p.side && p.found ? try_bases(&p) : mc_fail_memory("strategies of two sides");
    free(p.side);
    if (status || p.n_found == 0) {
        free(p.found);
        return status;
    }
    *ranked = p.found;
    *n = p.n_found;
    return MESHCOLL_OK;
}
