/* The board of a process: what its ranks publish, and when a wait has lasted for too long. The caller
 * holds the job's lock, where it has one. */
#ifndef MC_WAITS_BOARD_H
#define MC_WAITS_BOARD_H

#include "runtime/diagnose/waits.h"
#include "runtime/handle/request.h"

/* Opens the board of a job. ERR_NO_MEMORY. */
int mc_waits_open(mc_job_t *job);
void mc_waits_close(mc_job_t *job);
/* A mesh is on the board, once it has a context, and leaves it. */
void mc_waits_join(const meshcoll_t *h);
void mc_waits_leave(const meshcoll_t *h);

/* Publishes what the job's running requests wait for, at time `now` (ms, CLOCK_MONOTONIC). Returns
 * OK, or ERR_TIMEOUT where one has been waited for longer than its limit. */
int mc_waits_look(mc_job_t *job, int64_t now);
/* How long a request may be waited for, in ms; 0: for ever. */
int64_t mc_waits_limit(const meshcoll_request_t *r);
/* A request that was looked at has ended. */
void mc_waits_forget(const meshcoll_request_t *ended);
/* The job has failed: what it waited for then stays on the board. */
void mc_waits_break(const mc_job_t *job);

/* A limit of the public interface, in seconds, as ms, rounded up; 0: none. ERR_INVALID_ARG where it is
 * no such number, without a text. */
int mc_timeout_ms(double seconds, int64_t *ms);

#endif
