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

/* Reduces the number of segments if they only shorten a fill that bursts make up for
 * (mc_strategy_segments). */
static void join_segments(const mc_mesh_t *mesh, const mc_links_t *links,
                          const mc_planner_query_t *query, mc_ranked_t *best)
{
    const mc_links_t at = mc_links_at(links, query->bytes);
    const uint32_t needed =
        mc_strategy_needed(&best->strategy, mesh, &at, query->root, query->bytes, query->pacing);
    const uint32_t enough =
        mc_strategy_segments(&best->strategy, mesh, links, query->root, query->bytes, needed);
    if (enough == best->strategy.segments)
        return;
    best->strategy.segments = enough;
    best->seconds = mc_strategy_seconds(&best->strategy, mesh, links, query->root, query->bytes);
}

/* The same for all strategies of the list, which is sorted again by the new prices. */
static void join_all(const mc_mesh_t *mesh, const mc_links_t *links,
                     const mc_planner_query_t *query, mc_ranked_t *ranked, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        join_segments(mesh, links, query, &ranked[i]);
        const mc_ranked_t mine = ranked[i];
        uint32_t place = i;
        for (; place > 0 && ranked[place - 1].seconds > mine.seconds; place--)
            ranked[place] = ranked[place - 1];
        ranked[place] = mine;
    }
}

/* The `most` cheapest strategies of one side (0: all), and those of two sides; sorted. */
static int find(meshcoll_collective_t collective, const mc_mesh_t *mesh, const mc_links_t *links,
                const mc_planner_query_t *query, uint32_t most, mc_ranked_t **ranked, uint32_t *n,
                uint32_t *considered)
{
    const mc_links_t at = mc_links_at(links, query->bytes);
    mc_priced_t graph;
    mc_ranked_t *list;
    int status = mc_priced_init(&graph, collective, mesh, &at, query);
    if (status)
        return status;
    status = mc_search(&graph, collective, &at, query, most, &list, n, considered);
    if (!status) {
        status = add_sides(&graph, collective, mesh, &at, query, &list, n, considered);
        if (status)
            free(list);
        else
            *ranked = list;
    }
    mc_priced_free(&graph);
    return status;
}

int mc_planner_rank(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t **ranked,
                    uint32_t *n, uint32_t *considered)
{
    uint32_t found, priced, most = query->most;
    const bool large = long_dims(mesh) > 2;
    int status = check(collective, mesh, links, query);
    if (large && !most)
        most = MC_RANK_MOST;
    if (!status)
        status = find(collective, mesh, links, query, large ? most : 0, ranked, &found, &priced);
    if (status)
        return status;
    *n = most && most < found ? most : found;
    if (query->pacing && mc_links_burst(links))
        join_all(mesh, links, query, *ranked, *n);
    *considered = priced;
    return MESHCOLL_OK;
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
    if (query->pacing && mc_links_burst(links))
        join_segments(mesh, links, query, best);
    return MESHCOLL_OK;
}
