/* Starts calls. */
#ifndef MC_CALL_START_H
#define MC_CALL_START_H

#include "runtime/handle/request.h"

/* A call: its checked arguments and its operation numbers. */
typedef struct {
    meshcoll_args_t args;
    const meshcoll_args_t *given; /* the caller's, unchecked; NULL: not to be remembered */
    bool is_barrier;
    mc_workspace_t *staging; /* ownership passes to mc_call_start; NULL: none */
    uint32_t number, counts; /* from mc_next_call: its own; an alltoallv's for counts */
    uint32_t check;          /* the same: of the comparison, where calls are checked */
} mc_asked_t;

/* Takes its numbers. They depend on the call, not on its strategy, so that ranks agree on the next
 * call's numbers even where one fails early. */
void mc_call_number(meshcoll_t *h, const meshcoll_args_t *given, mc_asked_t *asked);

/* Starts a call with a request of the handle's, which is the caller's until mc_request_tell or
 * mc_request_drop. */
int mc_call_start(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t **request);
/* Where the handle remembers the request that last served such a call. */
static inline meshcoll_request_t **mc_known_at(meshcoll_t *h, const meshcoll_args_t *a)
{
    const uint64_t key =
        ((uintptr_t)a->in * 5 + (uintptr_t)a->out) ^ a->count << 4 ^ (uint64_t)a->collective << 56;
    return &h->known[key * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (MC_KNOWN_CALLS - 1)];
}
/* Starts a request that served the same call last and is still bound to it. */
int mc_call_start_known(meshcoll_t *h, meshcoll_request_t *r, meshcoll_request_t **request);

#endif
