/*
 * Failure of a mesh. The first run that fails breaks its mesh: all running requests end with its
 * error, and nothing is sent or received any more. So no peer receives leftovers of a failed run,
 * and the caller may change or free the buffers of all calls (except where a network card reads
 * them by RDMA: meshcoll.h).
 */
#ifndef MC_RUNTIME_FAILURE_H
#define MC_RUNTIME_FAILURE_H

#include "runtime/handle/handle.h"

/* Breaks the mesh after a failed run, whose error text is in meshcoll_last_error(). */
void mc_failure_break(meshcoll_t *h, int status);
/* Returns OK, or the error of a mesh that failed. */
int mc_failure_check(const meshcoll_t *h);
/* Checks, a few times per second and only where requests run, that the peers this rank waits for
 * are alive; breaks the mesh where one is not. */
void mc_failure_look(meshcoll_t *h);

#endif
