#include "compose/planner/planner.h"

#include "compose/planner/search/search.h"
#include "compose/planner/sides_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Returns the number of dimensions longer than 1. */
static int32_t count_long_dims(const mc_mesh_t *mesh)
{
    int32_t n = 0;
    for (int32_t d = 0; d < mesh->ndims; d++)
        n += mesh->dim[d].extent > 1;
    return n;
}

/* Inserts the strategies of `more`, which need not be sorted, into the list, which is sorted by seconds. An
 * inserted strategy follows those of equal cost. */
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

/* Inserts the strategies of two sides; `ranked` has those of one side. */
static int add_sides(mc_priced_t *graph, meshcoll_collective_t collective, const mc_mesh_t *mesh,
                     const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t **ranked,
                     uint32_t *n, uint32_t *considered)
{
    mc_ranked_t *pair;
    uint32_t n_pairs;
    /* the named strategies of two sides reduce by rings: not in rank order, nor by the aligned tree */
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

/* Can the query use this row of the table of measured strategies? Parses its strategy. The table may have been
 * written by another version of meshcoll or for another mesh, so the text may not parse. */
static bool is_usable(const mc_measured_row_t *row, meshcoll_collective_t collective,
                      const mc_mesh_t *mesh, const mc_planner_query_t *query,
                      mc_strategy_t *strategy)
{
    const mc_mesh_t led = mc_mesh_led_by(mesh, query->root);
    return row->collective == collective &&
           mc_strategy_parse(row->strategy, collective, mesh, strategy) == MESHCOLL_OK &&
           (!query->in_order || mc_strategy_check_order(strategy, &led) == MESHCOLL_OK) &&
           (!query->aligned ||
            mc_strategy_check_aligned(strategy, mesh, query->aligned) == MESHCOLL_OK);
}

/* Finds the measured strategies that the query allows, the fastest first. *n is 0 if there are none; the cost
 * model chooses then. */
static int find_measured(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                         const mc_links_t *links, const mc_planner_query_t *query,
                         mc_ranked_t **ranked, uint32_t *n)
{
    mc_ranked_t *list = NULL;
    uint32_t found = 0;
    int status = MESHCOLL_OK;
    const mc_measured_t *const table = mc_links_measured(links);
    for (int32_t i = 0; i < table->n_rows && !status; i++) {
        const mc_measured_row_t *const row = &table->row[i];
        mc_ranked_t one;
        if (!is_usable(row, collective, mesh, query, &one.strategy))
            continue;
        one.seconds = mc_measured_seconds(table, row, query->bytes);
        status = add_ranked(&list, &found, &one, 1);
    }
    if (status) {
        free(list);
        return status;
    }
    *ranked = list;
    *n = found;
    return MESHCOLL_OK;
}

/* The links as the vector finds them, without what each call takes. */
static mc_links_t bare_links(const mc_links_t *links, double bytes)
{
    mc_links_t bare = mc_links_at(links, bytes);
    for (int32_t d = 0; d < links->ndims; d++)
        bare.dim[d].call = 0;
    return bare;
}

/* Finds the `most` cheapest strategies of one side (0: all) and the strategies of two sides, sorted. What
 * each call takes is the same for all strategies: it is added in the end. */
static int search(meshcoll_collective_t collective, const mc_mesh_t *mesh, const mc_links_t *links,
                  const mc_planner_query_t *query, uint32_t most, mc_ranked_t **ranked, uint32_t *n,
                  uint32_t *considered)
{
    const mc_links_t bare = bare_links(links, query->bytes);
    mc_priced_t graph;
    mc_ranked_t *list;
    int status = mc_priced_init(&graph, collective, mesh, &bare, query);
    if (status)
        return status;
    status = mc_search(&graph, &bare, query, most, &list, n, considered);
    if (!status) {
        status = add_sides(&graph, collective, mesh, &bare, query, &list, n, considered);
        if (status)
            free(list);
        else
            *ranked = list;
    }
    mc_priced_free(&graph);
    for (uint32_t i = 0; !status && i < *n; i++)
        list[i].seconds = mc_strategy_with_call(list[i].seconds, links);
    return status;
}

/* Finds the measured strategies, or, if there are none, strategies by the cost model. */
static int find_any(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, uint32_t most,
                    mc_ranked_t **ranked, uint32_t *n, uint32_t *considered)
{
    mc_ranked_t *list;
    uint32_t found;
    int status = check(collective, mesh, links, query);
    if (!status)
        status = find_measured(collective, mesh, links, query, &list, &found);
    if (!status && found == 0)
        return search(collective, mesh, links, query, most, ranked, n, considered);
    if (status)
        return status;
    *ranked = list;
    *n = *considered = found;
    return MESHCOLL_OK;
}

int mc_planner_rank(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t **ranked,
                    uint32_t *n, uint32_t *considered)
{
    uint32_t found, most = query->most;
    const bool large = count_long_dims(mesh) > 2;
    if (large && !most)
        most = MC_RANK_MOST;
    const int status =
        find_any(collective, mesh, links, query, large ? most : 0, ranked, &found, considered);
    if (!status)
        *n = most && most < found ? most : found;
    return status;
}

int mc_planner_best(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t *best)
{
    mc_ranked_t *ranked;
    uint32_t n, considered;
    mc_planner_query_t one = *query;
    one.most = 1;
    const int status = find_any(collective, mesh, links, &one, 1, &ranked, &n, &considered);
    if (status)
        return status;
    *best = ranked[0];
    free(ranked);
    return MESHCOLL_OK;
}
