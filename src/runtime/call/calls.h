/* Calls, blocking, nonblocking and persistent, by their arguments. `h` may be NULL, which is an
 * error. */
#ifndef MC_RUNTIME_CALLS_H
#define MC_RUNTIME_CALLS_H

#include "runtime/handle/request.h"

/* Checks a call, chooses its strategy, and runs it to the end; in a group it only checks and
 * collects. */
int mc_run(meshcoll_t *h, const meshcoll_args_t *given);
/* The same without waiting; *request is the caller's until its completion is returned. */
int mc_begin(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request);
/* For a call refused before its arguments could be checked, as it lacks arguments or a pointer for
 * its request: takes its operation numbers, and fails the open group. `exchanges`: it is an
 * alltoallv, which takes two. Returns `status`. */
int mc_call_refuse(meshcoll_t *h, bool exchanges, int status);
/* Makes a persistent request. */
int mc_init(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request);

#endif
