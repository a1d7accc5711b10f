/* The links that were measured when a job was made, by it or by an earlier one on the same cluster; and what else is
 * kept of it. */
#ifndef MC_HANDLE_CALIBRATED_H
#define MC_HANDLE_CALIBRATED_H

#include "base/system/kept.h"
#include "runtime/handle/job.h"

#include "mesh/link/link.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct mc_calibrated {
    mc_links_t links; /* of the job's first mesh, where `is_measured` */
    bool is_measured; /* else they are of tune's file, or generic */
    uint64_t hash;    /* of the links' text */
    char *key;        /* under which all is kept; NULL: another rank knows it, or nothing is kept */
} mc_calibrated_t;

/* The kinds of text that are kept: links; and what calls have learned (call/adapt.h), behind a line that says on which
 * links, by MC_KEPT_ON of mc_calibrated_t.hash. */
#define MC_KEPT_LINKS   "links"
#define MC_KEPT_LEARNED "learned"
#define MC_KEPT_ON      "on links %016" PRIx64 "\n"
enum { MC_KEPT_ON_BYTES = sizeof "on links 0123456789abcdef" };

/* Calls show that the links are wrong: the next job measures them anew. Only the first time does anything. */
static inline void mc_calibrated_drop(const mc_job_t *job)
{
    if (!job->calibrated || !job->calibrated->is_measured || !job->calibrated->key)
        return;
    mc_kept_drop(MC_KEPT_LINKS, job->calibrated->key);
    free(job->calibrated->key);
    job->calibrated->key = NULL;
}

#endif
