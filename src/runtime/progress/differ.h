/* Ranks that make different calls under one number: their messages have other digests, so that no receive takes
 * them. */
#ifndef MC_PROGRESS_DIFFER_H
#define MC_PROGRESS_DIFFER_H

#include "runtime/handle/handle.h"

/* Has a message arrived of another call under the number of one that runs here? OK, or ERR_MISMATCH with a
 * sentence. For ranks that have waited for long. */
int mc_differ_check(const mc_job_t *job);
/* Where nobody has sent: asks the rank that a run waits for whether it is in another call of that number, after a
 * second, and each time that the wait has doubled. To be called before mc_waits_look of the same time. */
int mc_differ_ask(const mc_job_t *job, int64_t now);

#endif
