/* The list of jobs without a lock that have running requests, per thread. */
#ifndef MC_RUNTIME_BUSY_H
#define MC_RUNTIME_BUSY_H

#include "runtime/handle/handle.h"

/* The first of the list; the others follow by next_busy. */
extern _Thread_local mc_shared_t *mc_busy;

/* Appends a started request to its job's running ones, and the job to the thread's list. */
void mc_busy_enlist(meshcoll_t *h, meshcoll_request_t *r);
/* The same for what is not the run of a plan: it is progressed before other requests. */
void mc_busy_enlist_first(mc_shared_t *job, meshcoll_request_t *r);
/* Removes a job that has no running request from the list. */
void mc_busy_leave(mc_shared_t *job);

#endif
