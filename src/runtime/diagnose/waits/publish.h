/* What a process publishes of its waits, for any of its threads and other ranks to copy (waits.h). The caller holds the
 * job's lock, where it has one. */
#ifndef MC_DIAGNOSE_PUBLISH_H
#define MC_DIAGNOSE_PUBLISH_H

#include "runtime/diagnose/waits/waits.h"
#include "runtime/handle/run.h"

/* ERR_NO_MEMORY. */
int mc_waits_open(mc_job_t *job);
void mc_waits_close(mc_job_t *job);
/* A mesh is told of, once it has a context, until it leaves. */
void mc_waits_join(const meshcoll_t *h);
void mc_waits_leave(const meshcoll_t *h);

/* Publishes what the oldest of the job's `n` running requests wait for, at time `now` (ms, CLOCK_MONOTONIC). */
void mc_waits_publish(const mc_job_t *job, int32_t n, int64_t now);
/* A request that was published has ended. */
void mc_waits_forget(const meshcoll_request_t *ended);
/* A call on device memory is launched. */
void mc_waits_launched(const mc_job_t *job, const mc_waits_launch_t *launch);
/* The job has failed: what it waited for then stays. */
void mc_waits_break(const mc_job_t *job);

/* Greetings serve other requests, which name the connection that they wait for. */
static inline bool mc_waits_are_of(const meshcoll_request_t *r)
{
    const mc_run_t *const run = mc_run_of(r);
    return ((run && run->plan) || r->kind->describe) && r->status == MESHCOLL_IN_PROGRESS;
}

#endif
