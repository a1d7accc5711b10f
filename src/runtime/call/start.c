#include "runtime/call/start.h"

#include "runtime/check/passing.h"
#include "runtime/handle/digest.h"
#include "runtime/progress/failure.h"
#include "runtime/request/cache.h"
#include "runtime/request/leads.h"
#include "runtime/request/numbers.h"

/* Binds a request to a call's arguments, and for an alltoallv to the sizes of the blocks that pass
 * this rank. */
static int bind(const mc_asked_t *asked, meshcoll_request_t *r)
{
    const meshcoll_args_t *const a = &asked->args;
    return a->in_counts ? mc_passing_bind(r, a, asked->number.counts) : mc_cache_bind(r, a, NULL);
}

/* Starts a request whose binding returned `status`. */
static int start(meshcoll_request_t *r, int status, meshcoll_request_t **request)
{
    if (!status)
        status = mc_request_start(r);
    if (status) {
        mc_request_drop(r);
        return status;
    }
    *request = r;
    return MESHCOLL_OK;
}

/* Calls that were made before -------------------------------------------------------------------- */

/* Of what kind calls like this find their request bound, if at all. */
static uint64_t kind_of(const meshcoll_t *h, const mc_asked_t *asked)
{
    const meshcoll_args_t *const a = asked->given;
    return a && !h->checks && !h->explain ? mc_cache_kind(a, asked->is_barrier) : MC_KIND_ONCE;
}

/* Moves the binding to the call's buffers, and to another workspace. */
__attribute__((noinline)) static int move(meshcoll_request_t *r, const meshcoll_args_t *given)
{
    const int status = r->workspace || r->needs == 0 ? mc_request_move(r, given->in, given->out)
                                                     : MESHCOLL_ERR_NO_MEMORY;
    if (status) { /* the request has no binding then */
        r->cached.kind = MC_KIND_ONCE;
        return status;
    }
    r->cached.in = given->in;
    r->cached.out = given->out;
    return MESHCOLL_OK;
}

int mc_call_start_bound(meshcoll_t *h, meshcoll_request_t *r, const meshcoll_args_t *given,
                        meshcoll_request_t **request)
{
    mc_cache_take(h, r, mc_next_call(h));
    mc_lead_call(h, r->cached.bytes, r);
    if (r->needs > 0)
        r->workspace = mc_take_memory(h);
    const bool stays = r->cached.in == given->in && r->cached.out == given->out &&
                       (r->needs == 0 || (r->workspace && mc_request_stays(r)));
    return start(r, stays ? MESHCOLL_OK : move(r, given), request);
}

int mc_call_start(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t **request)
{
    const meshcoll_args_t *const a = &asked->args;
    const uint64_t kind = kind_of(h, asked);
    mc_choice_entry_t choice;
    meshcoll_request_t *r;
    mc_description_t call = {
        .args = a, .number = asked->number.own, .is_barrier = asked->is_barrier};
    int status = mc_cache_look(h, a, asked->is_barrier, &choice);
    if (!status) {
        call.strategy = &choice.best.strategy;
        h->making = &call;
        status = mc_cache_serve(h, a, &choice, kind != MC_KIND_ONCE, asked->number.own, &r);
        h->making = NULL;
    }
    if (status) {
        if (asked->staging)
            mc_return_memory(h, asked->staging);
        return mc_call_refused(h, &(mc_refused_t){asked->number, false, false}, status);
    }
    r->staging = asked->staging;
    mc_request_sign(r, mc_digest_of(h, a, asked->is_barrier));
    if (!h->checks) /* the comparison bounds the lead, and calls that it ends count differently */
        mc_lead_call(h, mc_lead_bytes(h, a), r);
    if (h->hooks.compare)
        status = h->hooks.compare(r, &call, asked->number.check);
    if (!status && !r->why)
        status = bind(asked, r);
    if (status)
        status = mc_lead_refused(h, asked->number.own, false, status);
    else if (kind != MC_KIND_ONCE)
        mc_cache_note(r, asked->given, kind, mc_lead_bytes(h, a));
    return start(r, status, request);
}
