#include "compose/planner/planner.h"

#include "compose/planner/ranking.h"
#include "compose/planner/search.h"
#include "compose/planner/two_sides.h"

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

/* Measured strategies ---------------------------------------------------------------------------- */

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

/* Adds the measured strategies that the query allows. */
static int add_measured(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                        const mc_links_t *links, const mc_planner_query_t *query,
                        mc_ranking_t *ranking)
{
    const mc_measured_t *const table = mc_links_measured(links);
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < table->n_rows && !status; i++) {
        const mc_measured_row_t *const row = &table->row[i];
        mc_ranked_t one;
        if (!is_usable(row, collective, mesh, query, &one.strategy))
            continue;
        one.seconds = mc_measured_seconds(table, row, query->bytes);
        status = mc_ranking_add(ranking, &one);
    }
    ranking->considered = ranking->n;
    ranking->exhaustive = true;
    return status;
}

/* Modelled strategies ---------------------------------------------------------------------------- */

/* Adds strategies of one side and of two. */
static int search(meshcoll_collective_t collective, const mc_mesh_t *mesh, const mc_links_t *links,
                  const mc_planner_query_t *query, mc_ranking_t *ranking)
{
    const mc_links_t at = mc_links_at(links, query->bytes);
    mc_priced_t graph;
    mc_planner_query_t at_most = *query;
    int status = mc_priced_init(&graph, collective, mesh, &at, query);
    if (status)
        return status;
    if (graph.graph.n > 2 && !query->most)
        at_most.most = MC_RANK_MOST;
    status = mc_search(&graph, &at_most, ranking);
    /* the named strategies of two sides reduce by rings: not in rank order, nor by the aligned tree */
    if (!status && !query->in_order && !query->aligned)
        status = mc_sides_search(&graph, &at_most, ranking);
    mc_priced_free(&graph);
    mc_ranking_settle(ranking, at_most.most);
    return status;
}

static int find(meshcoll_collective_t collective, const mc_mesh_t *mesh, const mc_links_t *links,
                const mc_planner_query_t *query, mc_ranking_t *ranking)
{
    int status = check(collective, mesh, links, query);
    if (!status)
        status = add_measured(collective, mesh, links, query, ranking);
    if (!status && ranking->n > 0)
        mc_ranking_settle(ranking, query->most);
    else if (!status)
        status = search(collective, mesh, links, query, ranking);
    return status;
}

int mc_planner_rank(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranking_t *ranking)
{
    mc_ranking_t found = {0};
    const int status = find(collective, mesh, links, query, &found);
    if (status)
        free(found.list);
    else
        *ranking = found;
    return status;
}

int mc_planner_best(meshcoll_collective_t collective, const mc_mesh_t *mesh,
                    const mc_links_t *links, const mc_planner_query_t *query, mc_ranked_t *best)
{
    mc_planner_query_t one = *query;
    mc_ranking_t ranking;
    one.most = 1;
    const int status = mc_planner_rank(collective, mesh, links, &one, &ranking);
    if (status)
        return status;
    *best = ranking.list[0];
    free(ranking.list);
    return MESHCOLL_OK;
}
