/* What the ranks of a job wait for, told to who asks on this machine (meshcoll status). */
#ifndef MC_STATUS_STATUS_H
#define MC_STATUS_STATUS_H

#include "runtime/diagnose/waits/waits.h"
#include "runtime/handle/handle.h"

#include <stdio.h>

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

/* Opens the socket of a job (name.h) and the thread that answers on it; to call when its monitor has started. Without
 * them nobody is told: that is no error of the mesh. */
void mc_status_open(mc_job_t *job);
/* To call before the monitor is closed. */
void mc_status_close(mc_job_t *job);

#endif
