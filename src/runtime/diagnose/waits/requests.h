/* What the requests of this process wait for: how long they may, and what any of its threads and other ranks may copy
 * of it (waits.h). The caller holds the job's lock, where it has one. */
#ifndef MC_WAITS_REQUESTS_H
#define MC_WAITS_REQUESTS_H

#include "runtime/diagnose/waits/waits.h"
#include "runtime/handle/run.h"

/* Describing (describe.c) ---------------------------------------------------------------------- */

/* Describes a running request but for its times. */
void mc_wait_describe(const meshcoll_request_t *r, mc_wait_t *wait);
/* The same of a call on device memory. */
void mc_wait_describe_launch(const meshcoll_t *h, const mc_waits_launch_t *launch, mc_wait_t *wait);
/* Fills in the peer, a rank of the job. */
void mc_wait_set_job_peer(const meshcoll_t *h, int32_t rank, mc_wait_t *wait);
/* Where a rank of the job is. */
mc_wait_place_t mc_wait_place(const mc_job_t *job, int32_t rank);
/* Tells the meshes of a family apart; the same on all ranks. */
static inline uint32_t mc_wait_part(const meshcoll_t *h)
{
    return h->context.creation << MC_TAG_CONTEXT_BITS | h->context.number;
}
/* Every process numbers its own operations; all are one. */
static inline int32_t mc_wait_op(meshcoll_op_t op)
{
    return (uint32_t)op < MESHCOLL_OPS ? (int32_t)op : MESHCOLL_OPS;
}
/* A sum that changes where a running request has moved on. */
uint64_t mc_wait_mark(const meshcoll_request_t *r);

/* Publishing (publish.c) ------------------------------------------------------------------------ */

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

/* Time limits (limits.c) ------------------------------------------------------------------------ */

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
