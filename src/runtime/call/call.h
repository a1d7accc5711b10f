/* The way of a call (call.c, start.c), from the public functions to its started request. */
#ifndef MC_CALL_CALL_H
#define MC_CALL_CALL_H

#include "runtime/call/cache.h"
#include "runtime/call/leads.h"
#include "runtime/call/request.h"

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
int mc_call_refuse(meshcoll_t *h, bool is_persistent, bool exchanges, int status);

/* Takes a call's numbers, and checks its arguments and memory; `host_only` as of mc_call_memory. A call that fails has
 * taken its numbers, so that the next one has the same on all ranks. */
int mc_call_check(meshcoll_t *h, const meshcoll_args_t *given, const char *host_only,
                  mc_call_t *call);
/* Starts a request whose binding returned `status`. */
static inline int mc_call_begin(mc_run_t *r, int status, meshcoll_request_t **request)
{
    if (!status)
        status = mc_request_start(&r->head);
    if (status) {
        mc_request_drop(&r->head);
        return status;
    }
    *request = &r->head;
    return MESHCOLL_OK;
}
/* Starts a checked call with a request of the cache, which is the caller's until mc_request_complete or
 * mc_request_drop. */
int mc_call_start(meshcoll_t *h, mc_call_t *call, meshcoll_request_t **request);
/* Makes a persistent request of a checked call on host memory; the kind's begins with mc_persistent_t. */
extern const mc_request_kind_t mc_persistent_kind;
void mc_persistent_release(meshcoll_request_t *r);
int mc_call_persist(meshcoll_t *h, mc_call_t *call, const mc_request_kind_t *kind,
                    meshcoll_request_t **request);

/* Counts (counts.c). */

/* Binds a request to an alltoallv: at once; or, where its blocks pass through other ranks, when the exchange of
 * counts that it begins is complete. Until then a run of the request is pending. If the counts of two ranks differ, the
 * mesh fails. Collective. */
int mc_counts_bind(mc_run_t *r, const mc_call_t *call);
/* Exchanges the counts of such an alltoallv, and waits for that: *forwarded is the caller's to free(). NULL: blocks are
 * sent directly. ERR_STRATEGY on all ranks alike; ERR_INVALID_ARG where the counts of two ranks differ. Collective. */
int mc_counts_learn(meshcoll_t *h, const mc_call_t *call, mc_forwarded_t **forwarded);
/* Begins the exchange that was held while the call of `r` was compared (check.h), or ends it where ranks
 * disagree. */
void mc_counts_checked(const mc_run_t *r);

/* Groups (group.c). */

bool mc_group_is_open(const meshcoll_t *h);
/* Adds a call to the open group, and checks its arguments. */
int mc_group_add(meshcoll_t *h, const meshcoll_args_t *given);
/* A call of the group was refused with `status`, which it returns: the group's end then starts none. */
int mc_group_refuse(meshcoll_t *h, uint32_t number, int status);
/* The mesh is destroyed while the group is open: its calls are not made. */
void mc_group_drop(meshcoll_t *h);
/* Its calls; NULL behind the last. And how many of them are to run at its end. */
const mc_call_t *mc_group_call(const meshcoll_t *h, uint32_t i);
uint32_t mc_group_waiting(const meshcoll_t *h);
void mc_group_free(meshcoll_t *h);

/* Are calls of these arguments packed, if the group has others of their kind? */
bool mc_group_packs(meshcoll_t *h, const meshcoll_args_t *a);

#endif
