#include "compose/planner/search/search.h"

#include "compose/planner/search/search_several.h"

#include <stdlib.h>

static int find_best(mc_candidates_t *candidates, const mc_planner_query_t *query)
{
    mc_search_best_t *const s = malloc(sizeof *s);
    const int status = s ? mc_search_best_init(s, candidates, query, false)
                         : mc_fail_memory("the planner's paths");
    if (!status) {
        mc_search_best(s);
        mc_search_best_free(s);
    }
    free(s);
    return status ? status : candidates->status;
}

int mc_search(mc_priced_t *graph, const mc_links_t *links, const mc_planner_query_t *query,
              uint32_t most, mc_ranked_t **ranked, uint32_t *n, uint32_t *considered)
{
    mc_candidates_t *const candidates = malloc(sizeof *candidates);
    if (!candidates)
        return mc_fail_memory("the planner's paths");
    mc_candidates_init(candidates, graph, links, query->bytes);
    int status =
        most == 1 ? find_best(candidates, query) : mc_search_several(candidates, query, most);
    if (!status)
        status = mc_candidates_rank(candidates, ranked, n, considered);
    mc_candidates_free(candidates);
    free(candidates);
    return status;
}
