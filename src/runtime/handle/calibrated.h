/* The links that were measured when a job was made, by it or by an earlier one on the same cluster; and what else is
 * kept of it. */
#ifndef MC_HANDLE_CALIBRATED_H
#define MC_HANDLE_CALIBRATED_H

#include "base/hash.h"
#include "base/system/kept.h"
#include "runtime/handle/job.h"

#include "mesh/link/link.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static inline uint64_t mc_calibrated_hash(const char *links)
{
    return links ? mc_fnv(MC_FNV_START, links, strlen(links)) : 0;
}

/* Calls show that the links are wrong: the next job measures them anew, unless another one has meanwhile. Only the
 * first time does anything. Returns whether it did. */
static inline bool mc_calibrated_drop(const mc_job_t *job)
{
    mc_calibrated_t *const c = job->calibrated;
    if (!c || !c->is_measured || !c->key)
        return false;
    char *const kept = mc_kept_read(MC_KEPT_LINKS, c->key);
    if (mc_calibrated_hash(kept) == c->hash)
        mc_kept_drop(MC_KEPT_LINKS, c->key);
    free(kept);
    free(c->key);
    c->key = NULL;
    return true;
}

#endif
