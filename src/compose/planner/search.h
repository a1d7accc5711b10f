/*
 * The search for the cheapest strategies of one side, in each number of segments (a cut) alone. A narrow pass with one
 * label per state (labels.h) finds a good strategy, whose cost is the limit of a wide pass. The labels of the start
 * are then the strategies that no other dominates; the cheapest is among them. If several are wanted, a walk from the
 * start follows all paths that a label continues within a somewhat higher limit.
 *
 * With one or two dimensions longer than 1 a state has all labels, and the search is exact; with more it is a beam.
 */
#ifndef MC_COMPOSE_SEARCH_H
#define MC_COMPOSE_SEARCH_H

#include "compose/planner/priced.h"

/* Labels of a state in the beam: those of all states together divided by the number of states, or the least
 * (docs/lab-notes/constants.md). */
enum { MC_MOST_LABELS = 1 << 16, MC_LEAST_LABELS = 8 };

/* Adds the query->most cheapest strategies of one side (0: all) to an empty ranking. */
int mc_search(const mc_priced_t *graph, const mc_planner_query_t *query, mc_ranking_t *ranking);

#endif
