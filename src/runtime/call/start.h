/* Starts calls. */
#ifndef MC_CALL_START_H
#define MC_CALL_START_H

#include "runtime/handle/request.h"
#include "runtime/request/numbers.h"

/* A call: its checked arguments and its operation numbers. */
typedef struct mc_asked {
    meshcoll_args_t args;
    const meshcoll_args_t *given; /* the caller's, unchecked; NULL: not to be remembered */
    bool is_barrier;
    mc_workspace_t *staging; /* ownership passes to mc_call_start; NULL: none */
    mc_numbers_t number;     /* `check` 0: not compared, or compared with its group */
} mc_asked_t;

/* Starts a call with a request of the handle's, which is the caller's until mc_request_tell or
 * mc_request_drop. */
int mc_call_start(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t **request);
/* Starts a request that mc_cache_find found for it. */
int mc_call_start_bound(meshcoll_t *h, meshcoll_request_t *r, const meshcoll_args_t *given,
                        meshcoll_request_t **request);

#endif
