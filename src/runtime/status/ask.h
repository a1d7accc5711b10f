/* What other ranks wait for: their monitors answer, whatever their programs do. */
#ifndef MC_STATUS_ASK_H
#define MC_STATUS_ASK_H

#include "runtime/handle/handle.h"
#include "runtime/status/report.h"

/* The monitor of `h`, a root mesh, answers others from now on, and `h` can ask them. To call before
 * the monitor starts. */
void mc_status_join(meshcoll_t *h);

/* Asks all ranks, some at a time, each for 2 s at most: `rank`, by the caller's number, has room for all.
 * Stops early where *stop becomes true. Any thread but the monitor's. */
void mc_status_gather(const meshcoll_t *h, const _Atomic bool *stop, mc_status_rank_t *rank);

#endif
