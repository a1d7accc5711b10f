#include "compose/planner/planner.h"

#include "compose/planner/search.h"
#include "compose/planner/sides_search.h"

#include <stdlib.h>

static int check(meshcoll_collective_t collective, const mc_mesh_t *mesh, const mc_links_t *links,
                 const mc_planner_query_t *query)
{
    int status = mc_mesh_check(mesh);
    if (!status)
        status = mc_links_check(links, mesh);
    if (status)
        return status;
    if ((unsigned)collective >= MESHCOLL_COLLECTIVES)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "there is no collective %d", (int)collective);
    if (query->root < 0 || query->root >= mesh->size)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "root %d is not one of %d ranks", query->root,
                       mesh->size);
    if (!(query->bytes >= 0 && query->bytes <= 0x1p64))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "a vector has 0 to 2^64 bytes, not %g",
                       query->bytes);
    return MESHCOLL_OK;
}

static int32_t long_dims(const mc_mesh_t *mesh)
{
    int32_t n = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        n += mesh->dim[d].extent > 1;
    return n;
}

/* Inserts `more`, in any order, into the sorted list, behind strategies that cost the same. */
static int add_ranked(mc_ranked_t **ranked, uint32_t *n, const mc_ranked_t *more, uint32_t n_more)
{
    mc_ranked_t *const list = realloc(*ranked, ((size_t)*n + n_more) * sizeof *list);
    if (!list)
        return mc_fail_memory("the planner's list of strategies");
    *ranked = list;
    for (uint32_t i = 0; i < n_more; i++) {
        uint32_t place = (*n)++;
        for (; place > 0 && list[place - 1].seconds > more[i].seconds; place--)
            list[place] = list[place - 1];
        list[place] = more[i];
    }
    return MESHCOLL_OK;
}

static int add_sides(mc_priced_t *graph, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                     const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t **ranked,
                     uint32_t *n, uint32_t *considered)
{
    mc_ranked_t *pair;
    uint32_t n_pairs;
    /* sides consist of rings, which do not keep the order of ranks */
    if (query->in_order || query->aligned)
        return MESHCOLL_OK;
    int status = mc_sides_search(graph, collective, mesh, links, query, *ranked, &pair, &n_pairs);
    if (status || n_pairs == 0)
        return status;
    status = add_ranked(ranked, n, pair, n_pairs);
    *considered += n_pairs;
    free(pair);
    return status;
}

/* Settles the number of segments of a strategy (planner.h). */
static void settle_segments(const mc_mesh_t *mesh, const mc_links_t *links,
                            const mc_planner_query_t *query, mc_ranked_t *r)
{
    const mc_links_t at = mc_links_at(links, query->bytes);
    const uint32_t needed =
        mc_strategy_needed(&r->strategy, mesh, &at, query->root, query->bytes, query->pacing);
    const uint32_t enough =
        mc_strategy_segments(&r->strategy, mesh, links, query->root, query->bytes, needed);
    if (enough == r->strategy.segments)
        return;
    r->strategy.segments = enough;
    r->seconds = mc_strategy_seconds(&r->strategy, mesh, links, query->root, query->bytes);
}

/* The same for all strategies of the list, which is sorted again by the new prices. */
static void settle_all(const mc_mesh_t *mesh, const mc_links_t *links,
                       const mc_planner_query_t *query, mc_ranked_t *ranked, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        settle_segments(mesh, links, query, &ranked[i]);
        const mc_ranked_t mine = ranked[i];
        uint32_t place = i;
        for (; place > 0 && ranked[place - 1].seconds > mine.seconds; place--)
            ranked[place] = ranked[place - 1];
        ranked[place] = mine;
    }
}

/* The `most` cheapest strategies of one side (0: all), and those of two sides; sorted, and cut to those that
 * the query wants. */
static int find(meshcoll_collective_t collective, const mc_mesh_t *mesh, const mc_links_t *links,
                const mc_planner_query_t *query, uint32_t most, mc_ranked_t **ranked, uint32_t *n,
                uint32_t *considered)
{
    const mc_links_t at = mc_links_at(links, query->bytes);
    mc_priced_t graph;
    mc_ranked_t *list = NULL;
    uint32_t found, priced;
    int status = mc_priced_init(&graph, collective, mesh, &at, query);
    if (status)
        return status;
    status = mc_search(&graph, &at, query, most, &list, &found, &priced);
    if (!status)
        status = add_sides(&graph, collective, mesh, &at, query, &list, &found, &priced);
    mc_priced_free(&graph);
    if (status) {
        free(list);
        return status;
    }
    if (query->most && query->most < found)
        found = query->most;
    if (query->pacing && mc_links_burst(links))
        settle_all(mesh, links, query, list, found);
    *ranked = list;
    *n = found;
    *considered = priced;
    return MESHCOLL_OK;
}

int mc_planner_rank(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t **ranked,
                    uint32_t *n, uint32_t *considered)
{
    const int status = check(collective, mesh, links, query);
    const bool large = long_dims(mesh) > 2;
    mc_planner_query_t several = *query;
    if (status)
        return status;
    if (large && !several.most)
        several.most = MC_RANK_MOST;
    return find(collective, mesh, links, &several, large ? several.most : 0, ranked, n, considered);
}

int mc_planner_best(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t *best)
{
    mc_ranked_t *ranked;
    uint32_t n, considered;
    mc_planner_query_t one = *query;
    one.most = 1;
    int status = check(collective, mesh, links, query);
    if (!status)
        status = find(collective, mesh, links, &one, 1, &ranked, &n, &considered);
    if (status)
        return status;
    *best = ranked[0];
    free(ranked);
    return MESHCOLL_OK;
}
