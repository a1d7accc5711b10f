/* What the planner is asked, and what it finds. */
#ifndef MC_COMPOSE_QUERY_H
#define MC_COMPOSE_QUERY_H

#include "compose/price/pieces.h"
#include "compose/strategy/numbering.h"
#include "compose/strategy/strategy.h"

/* Powers of two up to this are tried as numbers of segments. */
enum { MC_MOST_SEGMENTS = 32768 };

typedef struct {
    int32_t root;
    double bytes; /* of the whole vector */
    uint32_t max_segments;
    uint32_t most;
    bool in_order;                 /* only strategies that reduce in the order of ranks */
    const mc_numbering_t *aligned; /* only those that add up by the aligned tree; NULL: any */
    const mc_stream_t
        *stream;   /* as the library runs it: with the segments that it needs; NULL: as priced */
    bool one_side; /* leaves those of two sides out */
} mc_planner_query_t;
typedef struct {
    mc_strategy_t strategy;
    double seconds;
} mc_ranked_t;

#endif
