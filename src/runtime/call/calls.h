/* Calls, blocking or not: what each public function does with what it was given. */
#ifndef MC_RUNTIME_CALLS_H
#define MC_RUNTIME_CALLS_H

#include "runtime/handle/request.h"

/* Checks, chooses, and runs to the end; in a group only checks. */
int mc_run(meshcoll_t *h, const meshcoll_args_t *given);
/* The same without waiting. */
int mc_begin(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request);
/* A call that is refused before it is one, as it lacks arguments, counts or a place for its request: it takes its
 * numbers, and fails its group. `exchanges`: it is an alltoallv, and has two. `h` may be NULL. */
int mc_call_refuse(meshcoll_t *h, bool exchanges, int status);
/* The same of what would make a persistent request. */
int mc_init_refuse(meshcoll_t *h, bool exchanges, int status);
/* Makes a persistent request of it. */
int mc_init(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request);

#endif
