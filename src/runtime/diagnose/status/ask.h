/* What other ranks wait for: their monitors answer, whatever their programs do. */
#ifndef MC_STATUS_ASK_H
#define MC_STATUS_ASK_H

#include "runtime/diagnose/waits/waits.h"
#include "runtime/handle/handle.h"

#include <stdio.h>

/* What the ranks of a job wait for, as a text for people. */

/* Of a rank. One that has not answered still has its numbers, process, host and place. */
typedef struct {
    bool answered;
    mc_waits_t waits;
} mc_status_rank_t;

typedef struct {
    int32_t n;
    const mc_status_rank_t *rank; /* by the caller's number */
} mc_status_t;

/* A table of the ranks, then a line for each thing that ranks wait for, with all ranks that do, then
 * whom that is to be blamed on. ERR_NO_MEMORY. */
int mc_status_print(const mc_status_t *status, FILE *out);

/* The monitor of the job answers others from now on, and the job can ask them. To call before
 * the monitor starts. */
void mc_status_join(mc_job_t *job);

/* Asks all ranks, some at a time, each for 2 s at most: `rank`, by the caller's number, has room for all.
 * Stops early where *stop becomes true. Any thread but the monitor's. */
void mc_status_gather(const mc_job_t *job, const _Atomic bool *stop, mc_status_rank_t *rank);

#endif
