/* Starting calls. */
#ifndef MC_CALL_START_H
#define MC_CALL_START_H

#include "runtime/handle/request.h"

/* What a call asks for; arguments are checked. */
typedef struct {
    meshcoll_args_t args;
    const meshcoll_args_t *given; /* before they were checked; NULL: not to be known again */
    bool is_barrier;
    mc_workspace_t *staging; /* given over to whoever starts it; NULL: none */
    uint32_t number, counts; /* of mc_next_call: its own, and of an alltoallv its counts' */
} mc_asked_t;

/* Both numbers. They follow from the call alone, not from its strategy, so that ranks agree on the next
 * one's also where one fails early. */
void mc_call_number(meshcoll_t *h, const meshcoll_args_t *given, mc_asked_t *asked);

/* Starts an operation with a request of the handle's, which is the caller's until mc_request_tell or
 * mc_request_drop. */
int mc_call_start(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t **request);
/* Where the handle remembers the request that last served such a call. */
static inline meshcoll_request_t **mc_known_at(meshcoll_t *h, const meshcoll_args_t *a)
{
    const uint64_t key =
        ((uintptr_t)a->in * 5 + (uintptr_t)a->out) ^ a->count << 4 ^ (uint64_t)a->collective << 56;
    return &h->known[key * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (MC_KNOWN_CALLS - 1)];
}
/* Starts a request that served the same call the last time, and is bound as then. */
int mc_call_start_known(meshcoll_t *h, meshcoll_request_t *r, meshcoll_request_t **request);

#endif
