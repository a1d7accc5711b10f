/* Candidates: strategies of one side that the search priced exactly, and the limit that the cheapest of them set. */
#ifndef MC_COMPOSE_CANDIDATES_H
#define MC_COMPOSE_CANDIDATES_H

#include "compose/planner/search/labels.h"

typedef struct {
    double seconds;
    uint32_t segments;
    int32_t n_phases;
    uint64_t path[MC_MAX_PHASES]; /* mc_label_phase */
} mc_candidate_t;

typedef struct {
    mc_priced_t *graph;
    const mc_links_t *links;
    double bytes;
    int status; /* an error; then all of these functions do nothing more */

    uint32_t most;     /* candidates wanted; 0: all */
    double limit;      /* seconds: strategies above it are not wanted */
    uint64_t n_priced; /* exactly */
    uint32_t n, room;
    mc_candidate_t *list;

    /* The path that is priced, and the exact cost of its first phases, as far as it is known. */
    uint64_t path[MC_MAX_PHASES];
    mc_phase_cost_t exact[MC_MAX_PHASES + 1];
    int32_t n_exact;
} mc_candidates_t;

void mc_candidates_init(mc_candidates_t *c, mc_priced_t *graph, const mc_links_t *links,
                        double bytes);
void mc_candidates_free(mc_candidates_t *c);

/* The exact cost of the path's first phases. Sums of phases that the path shares with the last one are reused:
 * whoever changes path[i] lowers n_exact to i. */
const mc_phase_cost_t *mc_candidates_cost(mc_candidates_t *c, int32_t n_phases);
double mc_candidates_seconds(const mc_candidates_t *c, const mc_phase_cost_t *cost,
                             uint32_t segments);
/* Counts the path, and adds it if it is within the limit. */
void mc_candidates_add(mc_candidates_t *c, int32_t n_phases, uint32_t segments, double seconds);
/* Sorts the list by cost and order of enumeration, drops all but the `most` first, and lowers the limit to them. */
void mc_candidates_settle(mc_candidates_t *c);
/* *ranked, *n and *considered as in mc_planner_rank. */
int mc_candidates_rank(const mc_candidates_t *c, mc_ranked_t **ranked, uint32_t *n,
                       uint32_t *considered);

#endif
