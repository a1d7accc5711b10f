/* How long requests may run. */
#ifndef MC_DIAGNOSE_LIMITS_H
#define MC_DIAGNOSE_LIMITS_H

#include "runtime/handle/request.h"

/* Counts how long the job's running requests have been waited for, until `now` (ms, CLOCK_MONOTONIC), and publishes
 * what they wait for. Returns OK, or ERR_TIMEOUT where one has been waited for longer than its limit: it names the
 * rank that is waited for and what that does. */
int mc_limits_poll(mc_job_t *job, int64_t now);
/* How long a request may be waited for, in ms; 0: for ever. */
int64_t mc_limits_of(const meshcoll_request_t *r);

/* A limit of the public interface, in seconds, as ms, rounded up; 0: none. ERR_INVALID_ARG where it is
 * no such number, without a text. */
int mc_timeout_ms(double seconds, int64_t *ms);

#endif
