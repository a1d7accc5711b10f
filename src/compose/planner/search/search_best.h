/* The search for the cheapest strategy. */
#ifndef MC_COMPOSE_SEARCH_BEST_H
#define MC_COMPOSE_SEARCH_BEST_H

#include "compose/planner/search/candidates.h"

/* Numbers of segments that a search tries: powers of two, each a cut. */
enum { MC_MOST_CUTS = 16 };
static inline uint32_t mc_cut_segments(int32_t cut)
{
    return UINT32_C(1) << cut;
}

/* A search in one number of segments after the other. */
typedef struct {
    mc_candidates_t *candidates;
    mc_bounds_t bounds;
    mc_labels_t labels;
    int32_t n_cuts;
    double bound[MC_MOST_CUTS]; /* by cut: lower bound of its strategies' seconds */
} mc_search_best_t;

/* `wants_all`: the search serves one for several strategies (mc_bounds_init). */
int mc_search_best_init(mc_search_best_t *s, mc_candidates_t *candidates,
                        const mc_planner_query_t *query, bool wants_all);
void mc_search_best_free(mc_search_best_t *s);

/* A good strategy, fast: one label per state. */
void mc_search_good(mc_search_best_t *s);
/* The cheapest strategy. */
void mc_search_best(mc_search_best_t *s);

/* Each state's part of MC_MOST_LABELS. */
int32_t mc_labels_per_state(const mc_priced_t *graph);

#endif
