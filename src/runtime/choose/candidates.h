/* Strategies that may be faster than the planner's choice where its links are wrong. */
#ifndef MC_RUNTIME_CANDIDATES_H
#define MC_RUNTIME_CANDIDATES_H

#include "runtime/choose/choice.h"

/*
 * Finds up to `most` strategies for the key, none of which is predicted to take more than twice as long as the
 * cheapest, in the order of prediction: of other phases than `first` and than each other, half of them on other
 * dimensions too, and `first` in other numbers of segments. Where the key is ordered they have its order of sums.
 * Outputs on success.
 */
int mc_candidates_find(const mc_mesh_t *mesh, const mc_links_t *links, const mc_choice_key_t *key,
                       const mc_ranked_t *first, int32_t most, mc_ranked_t *candidate, int32_t *n);
/* May a strategy be found for the key, by its predicted time, its segments and its order of sums? */
bool mc_candidates_allow(const mc_mesh_t *mesh, const mc_links_t *links, const mc_choice_key_t *key,
                         const mc_ranked_t *first, const mc_ranked_t *candidate);

#endif
