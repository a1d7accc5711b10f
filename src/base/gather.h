/*
 * Exchanges over the caller's out-of-band allgather, before any transport exists. A rank that has
 * failed still takes part: the others would wait for it.
 */
#ifndef MC_BASE_GATHER_H
#define MC_BASE_GATHER_H

#include "base/base.h"

/* Returns OK where all ranks pass OK, else an error on every rank: this rank's own, or the status
 * of the lowest rank that failed. Collective. */
int mc_agree(const meshcoll_oob_t *oob, int status);

/* Gathers `bytes` bytes of each rank into *all, by rank, which is the caller's to free. Where a
 * rank passes an error or has no memory, nothing is gathered and all ranks return an error.
 * Collective. */
int mc_gather(const meshcoll_oob_t *oob, int status, const void *mine, size_t bytes, void **all);

#endif
