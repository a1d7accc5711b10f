/* The list of roots without a lock that have running requests, per thread. */
#ifndef MC_RUNTIME_BUSY_H
#define MC_RUNTIME_BUSY_H

#include "runtime/handle/handle.h"

/* The first of the list; the others follow by next_busy. */
extern _Thread_local meshcoll_t *mc_busy;

/* Appends a started request to its root's running ones, and the root to the thread's list. */
void mc_busy_enlist(meshcoll_t *h, meshcoll_request_t *r);
/* The same for what is not the run of a plan: it is progressed before other requests. */
void mc_busy_enlist_first(meshcoll_t *h, meshcoll_request_t *r);
/* Removes a root that has no running request from the list. */
void mc_busy_leave(meshcoll_t *h);

#endif
