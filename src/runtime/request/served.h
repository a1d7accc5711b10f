/* The requests that serve calls: a handle keeps some, each for one call at a time. */
#ifndef MC_REQUEST_SERVED_H
#define MC_REQUEST_SERVED_H

#include "runtime/request/request.h"

/* A request of the handle's for a call whose strategy is chosen: planned and wired. It is the caller's until mc_request_tell
 * or mc_request_drop. */
int mc_call_serve(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t *choice, uint32_t number,
                  meshcoll_request_t **request);
/* The same where the strategy is given. */
int mc_call_prepare(meshcoll_t *h, const meshcoll_args_t *a, const mc_strategy_t *strategy,
                    uint32_t number, meshcoll_request_t **request);
/* `passing`: as in mc_operands_t. */
int mc_call_bind(meshcoll_request_t *r, const meshcoll_args_t *a, const mc_passing_t *passing);
/* It serves the call of that number. */
static inline void mc_call_take(meshcoll_t *h, meshcoll_request_t *r, uint32_t number)
{
    r->taken = true;
    r->operation = number;
    r->used = ++h->n_taken;
}
/* A call's request that has ended, back to the handle's. */
void mc_call_release(meshcoll_request_t *r);

/* Memory for the time of a call; grows, and is used again. First in, first out: a loop that starts the
 * same calls again finds each where it was bound before, and binds nothing. NULL: out of memory. */
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

/* Before a handle ends: the requests that serve no call. And the memory. */
void mc_calls_forget(meshcoll_t *h);
void mc_calls_free_memory(meshcoll_t *h);

#endif
