/*
 * Failure of a job (handle/job.h). The first run that fails breaks it: all running requests end with its error,
 * and nothing is sent or received any more. So no peer receives leftovers of a failed run, and the caller may
 * change or free the buffers of all calls (except where a peer may still be at them until the mesh is destroyed:
 * meshcoll.h).
 */
#ifndef MC_RUNTIME_FAILURE_H
#define MC_RUNTIME_FAILURE_H

#include "runtime/handle/handle.h"

/* The alarm of a job without a monitor. */
extern const _Atomic bool mc_no_alarm;

/* Completes a run, successful or failed, that is out of the list of running ones: a failure that is not the request's
 * alone breaks the mesh. */
void mc_request_end(meshcoll_request_t *r);
/* Breaks the mesh after a failed run, whose error text is in meshcoll_last_error(). */
void mc_failure_break(meshcoll_t *h, int status);
void mc_failure_end(mc_job_t *job, int status);
/* The same from a thread that does not hold the lock, of a job with a monitor: all ranks are told, and this one's
 * meshes break when a thread that holds its lock looks. */
void mc_failure_post(const mc_job_t *job, int status);
/* The error of a job that failed, here or elsewhere. */
int mc_failure_report(mc_job_t *job);
/* Returns OK, or the error of a mesh that failed, here or elsewhere. */
static inline int mc_failure_check(meshcoll_t *h)
{
    mc_job_t *const job = h->job;
    const bool failed =
        job->failure.status || atomic_load_explicit(job->failure.alarm, memory_order_relaxed);
    return failed ? mc_failure_report(job) : MESHCOLL_OK;
}
/* The same for calls that go on where a mesh has failed: only where nothing can be done with it. */
static inline int mc_failure_unusable(const meshcoll_t *h)
{
    return h->job->unusable ? mc_failure_report(h->job) : MESHCOLL_OK;
}
/* Breaks the mesh where news say that it failed elsewhere. */
void mc_failure_take_news(mc_job_t *job);
/* Looks, only where requests run, whether the mesh failed elsewhere or another rank was refused a call that
 * runs here; and, a few times per second, whether the peers this rank waits for are alive and no request
 * has run for too long. Breaks the mesh then. What watches the job looks then, too (hooks.h). */
void mc_failure_poll(mc_job_t *job);
/* Was another rank refused one of these calls, by their operation numbers, or any call that this rank was not?
 * Then its error; OK else. */
int mc_failure_refusal(const meshcoll_t *h, const uint32_t *number, uint32_t n);
/* Tells the other ranks that this one was refused a call, with meshcoll_last_error(): those that wait in it, or
 * wait for anything else and were not refused it, fail; this rank starts no other until all were (handle/lead.h).
 * To be called when the call has taken its operation number. A call that could not connect breaks the mesh. Returns
 * the call's status. */
int mc_failure_refused(meshcoll_t *h, uint32_t number, bool persistent, int status);
/* The same of a start of a persistent request, which has counted it; until all were, only this request starts no
 * more. */
int mc_failure_refused_start(meshcoll_request_t *r, int status);
/* The calls that a lead counts and its handle has made, refused ones too. */
uint32_t mc_failure_made(const meshcoll_t *h, const mc_lead_t *lead);
/* The error of ranks that made different calls, or were refused different ones. */
int mc_failure_differs(const meshcoll_t *h, const mc_lead_t *lead);

#endif
