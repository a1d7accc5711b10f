/* What the ranks of a job wait for, as a text for people. */
#ifndef MC_STATUS_REPORT_H
#define MC_STATUS_REPORT_H

#include "runtime/diagnose/waits/waits.h"

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

#endif
