/*
 * The way of a call. call.c takes it from the public functions: its number, whether the job has failed, its arguments,
 * and one look into the cache (cache.h), which on a hit has a bound request. start.c goes on with a miss: the choice,
 * and a request with its plan and connections from the cache, which it binds. Both start the request
 * (request/request.h), and progress runs it until its owner has its status.
 */
#ifndef MC_CALL_CALL_H
#define MC_CALL_CALL_H

#include "runtime/call/cache.h"
#include "runtime/request/numbers.h"

/* A call: its checked arguments and its operation numbers. */
typedef struct mc_call_args {
    meshcoll_args_t args;
    const meshcoll_args_t *given; /* the caller's, unchecked; NULL: the cache does not note it */
    bool is_barrier;
    bool is_nonblocking;     /* it must not wait for other ranks */
    mc_workspace_t *staging; /* ownership passes to mc_call_start; NULL: none */
    mc_numbers_t number;     /* `check` 0: not compared, or compared with its group */
} mc_call_args_t;

/* Of the public calls; `h` may be NULL, which is an error. Checks a call, chooses its strategy, and runs it to the end;
 * in a group it only checks and collects. */
int mc_run(meshcoll_t *h, const meshcoll_args_t *given);
/* The same without waiting; *request is the caller's until its completion is returned. */
int mc_begin(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request);
/* Makes a persistent request. */
int mc_init(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request);
/* For a call refused before its arguments could be checked, as it lacks arguments or a pointer for
 * its request: takes its operation numbers, and fails the open group. `exchanges`: it is an
 * alltoallv, which takes two. Returns `status`. */
int mc_call_refuse(meshcoll_t *h, bool exchanges, int status);

/* Starts a call with a request of the cache, which is the caller's until mc_request_complete or mc_request_drop. */
int mc_call_start(meshcoll_t *h, const mc_call_args_t *asked, meshcoll_request_t **request);
/* Starts a request that mc_cache_find found for it. */
int mc_call_start_bound(meshcoll_t *h, mc_cached_t *c, const meshcoll_args_t *given,
                        meshcoll_request_t **request);
/* Makes a persistent request of a checked call on host memory that has its numbers; the kind's begins with
 * mc_persistent_t. */
extern const mc_request_kind_t mc_persistent_kind;
int mc_call_persist(meshcoll_t *h, const mc_call_args_t *asked, const mc_request_kind_t *kind,
                    meshcoll_request_t **request);

/* Groups (group.c). */

bool mc_group_is_open(const meshcoll_t *h);
/* Adds a call to the open group, and checks its arguments. */
int mc_group_add(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier);
/* A call of the group was refused with `status`, which it returns: the group's end then starts none. */
int mc_group_refuse(meshcoll_t *h, uint32_t number, int status);
/* The mesh is destroyed while the group is open: its calls are not made. */
void mc_group_drop(meshcoll_t *h);
/* Its calls. */
uint32_t mc_group_calls(const meshcoll_t *h);
void mc_group_free(meshcoll_t *h);

/* Are calls of these arguments packed, if the group has others of their kind? */
bool mc_group_packs(meshcoll_t *h, const meshcoll_args_t *a);

#endif
