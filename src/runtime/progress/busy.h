/*
 * Requests that run. A poll advances only those that have something to do: a message of theirs has
 * completed (mc_io_finish), or what their pending run waits for is there. The others of a job wait in
 * `running` alone, in the list of their lead, or in `connecting`.
 */
#ifndef MC_RUNTIME_BUSY_H
#define MC_RUNTIME_BUSY_H

#include "runtime/handle/request.h"

/* The first of this thread's list of jobs without a lock that have running requests; the others follow by
 * requests.next. */
extern _Thread_local mc_job_t *mc_busy;

/* Appends a started request to its job's running ones, and the job to the thread's list. */
void mc_busy_enlist(mc_job_t *job, meshcoll_request_t *r);
/* Out of all lists of its job. */
void mc_busy_unlist(meshcoll_request_t *r);
/* Removes a job that has no running request from the thread's list. */
void mc_busy_leave(mc_job_t *job);

/* Where a running request goes that has been advanced. It joins `polled` if nothing tells of its next event: it
 * flushes, is no run of a plan, or has work left. */
void mc_busy_await(mc_job_t *job, meshcoll_request_t *r, mc_list_t *polled);
/* Lets those of a lead go on that have waited for what it has come to. */
void mc_busy_reached(const mc_list_t *waiting);
/* The same for those that wait for a connection: one is there. */
void mc_busy_connected(mc_job_t *job);

#endif
