/* Ranks that make different calls under one number: their messages have other digests, so that no receive takes
 * them. */
#ifndef MC_DIAGNOSE_DIFFER_H
#define MC_DIAGNOSE_DIFFER_H

#include "runtime/diagnose/waits/waits.h"
#include "runtime/handle/handle.h"

/* Has a message arrived of another call under the number of one that runs here? OK, or ERR_MISMATCH with a
 * sentence. For ranks that have waited for long. */
int mc_differ_check(mc_job_t *job);
/* Where nobody has sent: asks the rank that a run waits for whether it is in another call of that number, after a
 * second, and each time that the wait has doubled. To be called before mc_limits_poll of the same time. */
int mc_differ_ask(const mc_job_t *job, int64_t now);

/* Of a call on device memory, which waits for a rank of the job: asks that rank. `told`: something of another call has
 * come from there already, so that it is ERR_MISMATCH in any case; else OK where it is not known. */
int mc_differ_ask_launch(const meshcoll_t *h, int32_t rank, const mc_waits_launch_t *launch,
                         bool told);
/* Another rank has given up a call on device memory: waits until it has told why, which may take it such questions. */
void mc_differ_await(const mc_job_t *job);

/* What a rank tells at a new connection, and what the two ends then say of it (hooks.h). */
void mc_differ_introduce(const meshcoll_t *h, mc_greeting_note_t *note);
int mc_differ_meet(const mc_job_t *job, int32_t peer, const mc_greeting_note_t *own,
                   const mc_greeting_note_t *theirs);

#endif
