/*
 * How much passes a rank in an alltoallv of several phases. A block stops at ranks that know nothing of
 * its size. So the counts go first, by the same strategy, as an alltoall of one element a block: where
 * a chunk of SCRATCH has stood then, its block's count stands.
 */
#ifndef MC_RUNTIME_PASSING_H
#define MC_RUNTIME_PASSING_H

#include "runtime/handle/request.h"

/* One segment of counts on its way, in the chunks of its plan. */
typedef struct {
    meshcoll_request_t *request; /* NULL: every block goes straight, and nothing was exchanged */
    mc_workspace_t *counts;
    mc_passing_t table;
} mc_passed_t;

/* Collective, and waits. Until mc_passing_end, `passed->table` may be bound to. `number` of mc_next_call;
 * nothing is under way or held after an error. */
int mc_passing_exchange(meshcoll_t *h, const meshcoll_args_t *a, const mc_strategy_t *strategy,
                        uint32_t number, mc_passed_t *passed);
void mc_passing_end(meshcoll_t *h, mc_passed_t *passed);

#endif
