/* The links that were measured when a job was made, by it or by an earlier one on the same cluster. */
#ifndef MC_HANDLE_CALIBRATED_H
#define MC_HANDLE_CALIBRATED_H

#include "base/system/kept.h"
#include "runtime/handle/job.h"

#include "mesh/link/link.h"

#include <stdlib.h>

typedef struct mc_calibrated {
    mc_links_t links; /* of the job's first mesh */
    char *key; /* under which they are kept; NULL: another rank knows it, or they are not kept */
} mc_calibrated_t;

/* The kind of text that they are kept as. */
#define MC_KEPT_LINKS "links"

/* Calls show that the links are wrong: the next job measures them anew. Only the first time does anything. */
static inline void mc_calibrated_drop(const mc_job_t *job)
{
    if (!job->calibrated || !job->calibrated->key)
        return;
    mc_kept_drop(MC_KEPT_LINKS, job->calibrated->key);
    free(job->calibrated->key);
    job->calibrated->key = NULL;
}

#endif
