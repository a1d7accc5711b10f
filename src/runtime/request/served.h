/* The requests that serve calls: a handle caches some, each for one call at a time; and the
 * workspaces of calls. */
#ifndef MC_REQUEST_SERVED_H
#define MC_REQUEST_SERVED_H

#include "runtime/request/request.h"

/* Finds or makes a request for a call with a chosen strategy: planned and wired, not bound. It is
 * the caller's until mc_request_tell or mc_request_drop. `known`: the call will be known again
 * (known.h), so as long as there is room it takes no request that knows another call. */
int mc_call_serve(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t *choice, uint32_t number,
                  bool known, meshcoll_request_t **request);
/* Does the same for a given strategy. */
int mc_call_prepare(meshcoll_t *h, const meshcoll_args_t *a, const mc_strategy_t *strategy,
                    uint32_t number, meshcoll_request_t **request);
/* Binds it to a call's arguments; `passing` as in mc_operands_t. */
int mc_call_bind(meshcoll_request_t *r, const meshcoll_args_t *a, const mc_passing_t *passing);
/* Marks it as serving the call of that number. */
static inline void mc_call_take(meshcoll_t *h, meshcoll_request_t *r, uint32_t number)
{
    r->taken = true;
    r->operation = number;
    r->used = ++h->n_taken;
}
/* Returns the request of a completed call to the handle. */
void mc_call_release(meshcoll_request_t *r);

/* A workspace for the duration of a call; it grows on demand and is reused, first in, first out: a loop
 * that repeats the same calls gives each the workspace it had before, so that nothing is bound again.
 * NULL: out of memory. */
mc_workspace_t *mc_fresh_memory(void);
static inline mc_workspace_t *mc_take_memory(meshcoll_t *h)
{
    mc_workspace_t *const w = h->spare;
    if (!w)
        return mc_fresh_memory();
    h->spare = w->next;
    return w;
}
void mc_return_memory(meshcoll_t *h, mc_workspace_t *workspace);

/* Before a handle is destroyed: drops the requests that serve no call; frees the workspaces. */
void mc_calls_forget(meshcoll_t *h);
void mc_calls_free_memory(meshcoll_t *h);

#endif
