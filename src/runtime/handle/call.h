/* A call that is being made. This one description goes with it from its arguments to its request (call/call.h), and each
 * step on the way fills in its part. */
#ifndef MC_HANDLE_CALL_H
#define MC_HANDLE_CALL_H

#include "runtime/bind/binding.h"
#include "runtime/choose/choice.h"
#include "runtime/handle/device.h"

/* Operation numbers (call/numbers.h): its own, an alltoallv's for counts, and that of the comparison. 0: there is
 * none; `check`: it is not compared, or with its group. `status`: a persistent request got none. */
typedef struct {
    uint32_t own, counts, check;
    int status;
} mc_numbers_t;

typedef struct mc_call {
    const meshcoll_args_t *given; /* the caller's, unchecked; NULL: the cache does not note it */
    meshcoll_args_t args;         /* checked (call/args.h) */
    mc_numbers_t number;
    bool is_barrier, is_persistent;
    bool is_own;             /* of the library itself */
    bool waits;              /* it may wait for other ranks */
    bool on_device;          /* its buffers are device memory: */
    mc_pointer_t buffer;     /* one of them */
    mc_workspace_t *staging; /* of calls packed into it; passes to its request; NULL: none */

    /* Its choice, and where the cache has it (call/cache.h). */
    mc_choice_key_t key;
    uint32_t bucket;
    bool by_comm;  /* see mc_plans_by_comm */
    bool is_known; /* the cache has the choice */
    bool is_chosen;
    mc_ranked_t best;

    /* What calls of its kind have learned (call/adapt.h). */
    int32_t candidate;
    uint64_t *left; /* as in mc_cached_t */
    bool is_timed;
    bool is_aside;    /* it does not count, and uses what was learned */
    bool is_deferred; /* its choice is not known yet */

    /* On device memory: 1 more than the number of the registration that OUT lies in, 0: none; twice where it lies
     * there, and 1 more for an alltoall in place. */
    uint64_t window, window_at;
} mc_call_t;

#endif
