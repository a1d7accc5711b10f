/*
 * What ranks tell each other by the caller's allgather, before there is a transport. Whoever has failed takes part all the
 * same: the others would wait for it.
 */
#ifndef MC_BASE_GATHER_H
#define MC_BASE_GATHER_H

#include "base/base.h"

/* MESHCOLL_ERR_… of the rank that failed first if any did, else OK. Collective. */
int mc_agree(const meshcoll_oob_t *oob, int status);

/* All ranks' `bytes` at `mine`, by rank, in memory that is the caller's to free. Where a rank comes with an error, or has no
 * memory, nothing is gathered and all ranks have an error. Collective. */
int mc_gather(const meshcoll_oob_t *oob, int status, const void *mine, size_t bytes, void **all);

#endif
