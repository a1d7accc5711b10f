/* Opens and closes what several threads on one handle need: its lock, and the progress thread where
 * the settings ask for one. */
#ifndef MC_RUNTIME_PROGRESS_THREAD_H
#define MC_RUNTIME_PROGRESS_THREAD_H

#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"

/* Opens what the settings ask for; job->threads stays NULL where a single thread uses the job.
 * ERR_PARSE or ERR_NO_MEMORY. */
int mc_threads_open(mc_job_t *job, const mc_settings_t *settings);
void mc_threads_close(mc_job_t *job);

/* One turn of a wait on a handle with a lock: progresses it, yields or sleeps. The lock is held on
 * entry and return, and released in between. */
void mc_threads_turn(meshcoll_t *h, mc_waiting_t *w);

#endif
