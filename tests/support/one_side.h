/* The planner's search without strategies of two sides, for comparisons with enumerations, which have none. */
#ifndef MC_TESTS_SUPPORT_ONE_SIDE_H
#define MC_TESTS_SUPPORT_ONE_SIDE_H

#include "compose/planner/search/search.h"
#include "support/places.h"

#include <stdlib.h>

/* The cheapest, of `most` that are searched for: 1 by the search for one, more by the search for several. */
static inline mc_ranked_t best_one_side(const place_t *at, meshcoll_collective_t which,
                                        const mc_planner_query_t *query, uint32_t most)
{
    const mc_links_t links = mc_links_at(&at->links, query->bytes);
    mc_priced_t graph;
    mc_ranked_t *ranked;
    uint32_t n, considered;
    cr_assert_eq(mc_priced_init(&graph, which, &at->mesh, &links, query), MESHCOLL_OK);
    cr_assert_eq(mc_search(&graph, &links, query, most, &ranked, &n, &considered), MESHCOLL_OK);
    cr_assert_gt(n, 0);
    const mc_ranked_t best = ranked[0];
    free(ranked);
    mc_priced_free(&graph);
    return best;
}

#endif
