/* The planner's query and its result. */
#ifndef MC_COMPOSE_QUERY_H
#define MC_COMPOSE_QUERY_H

#include "compose/pace/limits.h"
#include "compose/strategy/numbering.h"
#include "compose/strategy/strategy.h"

/* The planner tries powers of two up to this as numbers of segments. */
enum { MC_MOST_SEGMENTS = 32768 };

typedef struct {
    int32_t root;
    double bytes;          /* of the whole vector (alltoall: of what one rank sends) */
    uint32_t max_segments; /* more only if the cut rule needs them (compose/pace/limits.h) */
    uint32_t most;         /* strategies to return; 0: all, or MC_RANK_MOST */
    bool in_order;         /* only strategies that reduce in the order of ranks */
    const mc_numbering_t *aligned; /* only strategies that sum by the aligned tree; NULL: any */
    const mc_pacing_t *pacing;     /* pacing, for the cut rule; NULL: without the cut rule */
} mc_planner_query_t;
typedef struct {
    mc_strategy_t strategy;
    double seconds;
} mc_ranked_t;

#endif
