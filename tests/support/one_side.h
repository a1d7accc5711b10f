/* The planner's search without strategies of two sides, for comparisons with enumerations, which have none. */
#ifndef MC_TESTS_SUPPORT_ONE_SIDE_H
#define MC_TESTS_SUPPORT_ONE_SIDE_H

#include "compose/planner/search.h"
#include "support/places.h"

#include <stdlib.h>

/* The cheapest, of `most` that are searched for. */
static inline mc_ranked_t best_one_side(const place_t *at, meshcoll_collective_t which,
                                        const mc_planner_query_t *query, uint32_t most)
{
    const mc_links_t links = mc_links_at(&at->links, query->bytes);
    mc_priced_t graph;
    mc_ranking_t ranking = {0};
    mc_planner_query_t several = *query;
    several.most = most;
    cr_assert_eq(mc_priced_init(&graph, which, &at->mesh, &links, query), MESHCOLL_OK);
    cr_assert_eq(mc_search(&graph, &several, &ranking), MESHCOLL_OK);
    cr_assert_gt(ranking.n, 0);
    const mc_ranked_t best = ranking.list[0];
    free(ranking.list);
    mc_priced_free(&graph);
    return best;
}

#endif
