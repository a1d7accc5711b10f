/* Lists of strategies with their seconds; for the planner. */
#ifndef MC_COMPOSE_RANKING_H
#define MC_COMPOSE_RANKING_H

#include "compose/planner/planner.h"

int mc_ranking_add(mc_ranking_t *ranking, const mc_ranked_t *ranked);
/* Sorts the list, and drops what is in it twice and all but the first `most` (0: none). */
void mc_ranking_settle(mc_ranking_t *ranking, uint32_t most);

#endif
