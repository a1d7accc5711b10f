/*
 * The sizes of the blocks that pass through a rank in an alltoallv of several phases, which are
 * unknown there. The counts are sent first, by the same strategy, as an alltoall of one element per
 * block: the chunk of SCRATCH in which a block will be then holds its count.
 */
#ifndef MC_RUNTIME_PASSING_H
#define MC_RUNTIME_PASSING_H

#include "runtime/handle/request.h"

/* An exchange of counts, of one segment: what passed through this rank, by chunk of its plan. */
typedef struct {
    meshcoll_request_t *request; /* NULL: blocks are sent directly, no exchange was needed */
    mc_workspace_t *counts;
    mc_passing_t table;
} mc_passed_t;

/* Exchanges the counts, and waits. `passed->table` may be bound until mc_passing_end. `number` is
 * from mc_next_call. After an error nothing is in flight or held. Collective. */
int mc_passing_exchange(meshcoll_t *h, const meshcoll_args_t *a, const mc_strategy_t *strategy,
                        uint32_t number, mc_passed_t *passed);
void mc_passing_end(meshcoll_t *h, mc_passed_t *passed);

#endif
