#include "compose/planner/search/search.h"

#include "compose/planner/search/search_several.h"

static int find_best(mc_candidates_t *candidates, const mc_planner_query_t *query)
{
    mc_search_best_t s;
    const int status = mc_search_best_init(&s, candidates, query, false);
    if (status)
        return status;
    mc_search_best(&s);
    mc_search_best_free(&s);
    return candidates->status;
}

int mc_search(mc_priced_t *graph, const mc_links_t *links, const mc_planner_query_t *query,
              uint32_t most, mc_ranked_t **ranked, uint32_t *n, uint32_t *considered)
{
    mc_candidates_t candidates;
    mc_candidates_init(&candidates, graph, links, query->bytes);
    int status =
        most == 1 ? find_best(&candidates, query) : mc_search_several(&candidates, query, most);
    if (!status)
        status = mc_candidates_rank(&candidates, ranked, n, considered);
    mc_candidates_free(&candidates);
    return status;
}
