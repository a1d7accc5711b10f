/*
 * A mesh that failed. The first run that fails breaks its mesh: all that runs on it ends with that error, and nothing is
 * sent or received any more, so that no peer is sent what a failed run left behind, and the caller may change or free the
 * buffers of all calls (a network card that reads them by RDMA excepted: meshcoll.h).
 */
#ifndef MC_RUNTIME_FAILURE_H
#define MC_RUNTIME_FAILURE_H

#include "runtime/handle/handle.h"

/* After a failed run, whose text meshcoll_last_error() has. */
void mc_failure_break(meshcoll_t *h, int status);
/* The error of a mesh that failed. */
int mc_failure_check(const meshcoll_t *h);
/* Where this mesh runs something and it is time: checks that the peers it waits for are alive, and breaks it where one is
 * not. */
void mc_failure_look(meshcoll_t *h);

#endif
