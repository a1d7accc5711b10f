#include "compose/planner/two_sides.h"

#include "compose/planner/ranking.h"
#include "compose/planner/search.h"
#include "compose/price/sides.h"

#include <math.h>
#include <stdlib.h>

/* A strategy of one side, in an order of dimensions. */
typedef struct {
    mc_strategy_t path;
    mc_side_flow_t flow;
} side_t;

typedef struct {
    const mc_priced_t *graph;
    const mc_planner_query_t *query;
    mc_ranking_t *ranking;
    int32_t n_long, long_dim[MC_MAX_DIMS]; /* dimensions longer than 1 */
    side_t *side;                          /* the current base path in all orders */
} pairing_t;

static void find_long(pairing_t *p)
{
    const mc_mesh_t *const mesh = p->graph->mesh;
    /* fold is not reordered: on both sides it is first and last */
    const int32_t n = mesh->ragged ? MC_RAGGED_FOLD : mesh->ndims;
    for (int32_t d = 0; d < n; d++)
        if (mesh->dim[d].extent > 1)
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
    *path = *base;
    for (int32_t i = 0; i < base->n_phases; i++) {
        const mc_dims_t dims = base->phase[i].dims;
        int32_t first = MC_MAX_DIMS, last = -1;
        for (int32_t d = dims.first; d < dims.first + dims.count; d++) {
            first = to[d] < first ? to[d] : first;
            last = to[d] > last ? to[d] : last;
        }
        if (last - first + 1 != dims.count)
            return false;
        path->phase[i].dims.first = first;
    }
    return mc_strategy_check(path, mesh) == MESHCOLL_OK;
}

/* Adds the pair in its cheapest number of segments. */
static int add_pair(const pairing_t *p, const side_t *a, const side_t *b)
{
    const mc_planner_query_t *const query = p->query;
    const mc_links_t *const links = p->graph->links;
    mc_ranked_t pair = {mc_strategy_pair(&a->path, &b->path), INFINITY};
    uint32_t needed = 2;
    if (query->pacing)
        needed = mc_strategy_needed(&pair.strategy, p->graph->mesh, links, query->root,
                                    query->bytes, query->pacing);
    const uint32_t most = needed > query->max_segments ? needed : query->max_segments;
    for (uint32_t k = needed > 2 ? needed : 2; k <= most && k <= MC_MOST_SEGMENTS; k *= 2) {
        const double seconds =
            mc_strategy_with_call(mc_flows_seconds(&a->flow, &b->flow, k, query->bytes), links);
        if (seconds < pair.seconds) {
            pair.seconds = seconds;
            pair.strategy.segments = k;
        }
    }
    p->ranking->considered++;
    return pair.seconds < INFINITY ? mc_ranking_add(p->ranking, &pair) : MESHCOLL_OK;
}

/* Adds the pairs of two sides of a base path: the path in all orders of dimensions that are valid. */
static int try_base(const pairing_t *p, const mc_strategy_t *base)
{
    const mc_priced_t *const graph = p->graph;
    int32_t n = 0;
    int status = MESHCOLL_OK;
    for (int32_t order = 0; order < n_orders(p); order++) {
        int32_t to[MC_MAX_DIMS];
        side_t *const side = &p->side[n];
        order_of(p, order, to);
        if (!reorder(base, graph->mesh, to, &side->path))
            continue;
        side->flow = mc_flow_of(&side->path, 0, graph->mesh, graph->links, p->query->root);
        n++;
    }
    for (int32_t a = 0; a < n; a++)
        for (int32_t b = 0; b < n && !status; b++)
            if (!mc_strategy_equal(&p->side[a].path, &p->side[b].path))
                status = add_pair(p, &p->side[a], &p->side[b]);
    return status;
}

/* Tries the first side of the named strategy. */
static int try_named(const pairing_t *p)
{
    const meshcoll_collective_t collective = p->graph->graph.collective;
    mc_strategy_t side;
    const int status =
        mc_strategy_named(mc_named_two_sided(collective)->name, collective, p->graph->mesh, &side);
    if (status)
        return status;
    side.n_phases = side.second;
    side.second = 0;
    side.segments = 1;
    return try_base(p, &side);
}

/* Tries the cheapest path, in one segment, for `part` of the vector. */
static int try_cheapest(const pairing_t *p, double part)
{
    mc_planner_query_t one = *p->query;
    mc_ranking_t ranking = {0};
    one.bytes *= part;
    one.max_segments = 1;
    one.most = 1;
    one.pacing = NULL;
    int status = mc_search(p->graph, &one, &ranking);
    if (!status && ranking.n > 0)
        status = try_base(p, &ranking.list[0].strategy);
    free(ranking.list);
    return status;
}

/* Is the incumbent within the time of a segment of the lower bound? It is if a pipeline keeps its busiest
 * link as busy as any strategy must, as with a network much slower than the links inside boxes. */
static bool is_limited(const mc_ranked_t *best, const mc_links_t *links, double bound)
{
    const uint32_t segments = best->strategy.segments;
    const double segment = (best->seconds - mc_links_call(links)) / segments;
    return best->seconds <= bound || (segments > 2 && best->seconds - bound < segment);
}

int mc_sides_search(const mc_priced_t *graph, const mc_planner_query_t *query,
                    mc_ranking_t *ranking)
{
    pairing_t p = {.graph = graph, .query = query, .ranking = ranking};
    const meshcoll_collective_t collective = graph->graph.collective;
    find_long(&p);
    if (p.n_long < 2 || query->max_segments < 2 || !mc_named_two_sided(collective) ||
        is_limited(&ranking->list[0], graph->links,
                   mc_lower_bound(collective, graph->mesh, graph->links, query->bytes)))
        return MESHCOLL_OK;
    p.side = malloc((size_t)n_orders(&p) * sizeof *p.side);
    int status = p.side ? try_named(&p) : mc_fail_memory("strategies of two sides");
    if (!status)
        status = try_cheapest(&p, 1.0 / 2);
    if (!status)
        status = try_cheapest(&p, 1.0 / 4);
    free(p.side);
    return status;
}
