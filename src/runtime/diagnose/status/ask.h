/* What other ranks wait for: their monitors answer, whatever their programs do. */
#ifndef MC_STATUS_ASK_H
#define MC_STATUS_ASK_H

#include "runtime/diagnose/status/report.h"
#include "runtime/handle/handle.h"

/* The monitor of the job answers others from now on, and the job can ask them. To call before
 * the monitor starts. */
void mc_status_join(mc_job_t *job);

/* Asks all ranks, some at a time, each for 2 s at most: `rank`, by the caller's number, has room for all.
 * Stops early where *stop becomes true. Any thread but the monitor's. */
void mc_status_gather(const mc_job_t *job, const _Atomic bool *stop, mc_status_rank_t *rank);

#endif
