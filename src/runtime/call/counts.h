/*
 * The sizes of the blocks that pass through a rank in an alltoallv of several phases, which are
 * unknown there. The counts are sent first, by the same strategy, as an alltoall of one element per
 * block: the chunk of SCRATCH in which a block will be then holds its count.
 */
#ifndef MC_CALL_COUNTS_H
#define MC_CALL_COUNTS_H

#include "runtime/handle/run.h"

/* Binds a request to its call: at once; or, of an alltoallv whose blocks pass through other ranks, when the exchange of
 * counts that it begins is complete. Until then a run of the request is pending. If the counts of two ranks differ, the
 * mesh fails. Collective. */
int mc_call_bind(mc_run_t *r, const mc_call_t *call);
/* Exchanges the counts of such an alltoallv, and waits for that: *forwarded is the caller's to free(). NULL: blocks are
 * sent directly. ERR_STRATEGY on all ranks alike; ERR_INVALID_ARG where the counts of two ranks differ. Collective. */
int mc_counts_learn(meshcoll_t *h, const mc_call_t *call, mc_forwarded_t **forwarded);
/* Begins the exchange that was held while the call of `r` was compared (check.h), or ends it where ranks
 * disagree. */
void mc_counts_checked(const mc_run_t *r);

#endif
