/* Handles that run something, started in this thread; those without a lock. */
#ifndef MC_RUNTIME_BUSY_H
#define MC_RUNTIME_BUSY_H

#include "runtime/handle/handle.h"

/* A list, by next_busy. */
extern _Thread_local meshcoll_t *mc_busy;

/* Puts a started request last among the running ones. */
void mc_busy_enlist(meshcoll_t *h, meshcoll_request_t *r);
/* The handle runs nothing any more. */
void mc_busy_leave(meshcoll_t *h);

#endif
