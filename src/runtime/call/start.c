#include "runtime/call/call.h"

#include "runtime/call/adapt.h"
#include "runtime/call/cache.h"
#include "runtime/call/counts.h"
#include "runtime/handle/digest.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/request/args.h"
#include "runtime/request/leads.h"
#include "runtime/request/numbers.h"
#include "runtime/request/request.h"

/* Starts a request whose binding returned `status`. */
static int start(mc_run_t *r, int status, meshcoll_request_t **request)
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

/* Calls that were made before -------------------------------------------------------------------- */

/* Of what kind calls like this find their request bound, if at all. */
static uint64_t kind_of(const meshcoll_t *h, const mc_call_args_t *asked)
{
    const meshcoll_args_t *const a = asked->given;
    return a && !h->hooks->compare && !h->hooks->made ? mc_cache_kind(a, asked->is_barrier)
                                                      : MC_KIND_ONCE;
}

/* Moves the binding to the call's buffers, and to another workspace. */
__attribute__((noinline)) static int move(mc_cached_t *c, const meshcoll_args_t *given)
{
    mc_run_t *const r = &c->run;
    const int status = r->workspace || r->needs == 0 ? mc_run_move(r, given->in, given->out)
                                                     : MESHCOLL_ERR_NO_MEMORY;
    if (status) { /* the request has no binding then */
        c->kind = MC_KIND_ONCE;
        return mc_lead_refused(r->head.mesh, r->head.number, false, status);
    }
    c->in = given->in;
    c->out = given->out;
    return MESHCOLL_OK;
}

int mc_call_start_bound(meshcoll_t *h, mc_cached_t *c, const meshcoll_args_t *given,
                        meshcoll_request_t **request)
{
    mc_run_t *const r = &c->run;
    mc_cache_take(h, c, mc_next_call(h));
    mc_lead_call(h, c->bytes, r);
    if (r->needs > 0)
        r->workspace = mc_take_memory(h);
    const bool stays = c->in == given->in && c->out == given->out &&
                       (r->needs == 0 || (r->workspace && mc_run_stays(r)));
    return start(r, stays ? MESHCOLL_OK : move(c, given), request);
}

__attribute__((noinline)) static int defer(meshcoll_t *h, const mc_call_args_t *asked,
                                           const mc_choice_entry_t *choice,
                                           meshcoll_request_t **request)
{
    mc_run_t *r;
    const int status = mc_adapt_defer(h, asked, choice, &r);
    return status ? mc_call_refused(h, &(mc_refused_t){asked->number, false, false}, status)
                  : start(r, status, request);
}

int mc_call_start(meshcoll_t *h, const mc_call_args_t *asked, meshcoll_request_t **request)
{
    const meshcoll_args_t *const a = &asked->args;
    const uint64_t kind = kind_of(h, asked);
    mc_choice_entry_t choice = mc_cache_entry(h, a, asked->is_barrier);
    mc_adapted_t adapted;
    mc_cached_t *c;
    mc_description_t call = {
        .args = a, .number = asked->number.own, .is_barrier = asked->is_barrier};
    int status = mc_adapt_choose(h, asked, &choice, &adapted);
    if (adapted == MC_ADAPT_DEFERRED)
        return defer(h, asked, &choice, request);
    if (!status) {
        call.strategy = &choice.best.strategy;
        h->calls.making = &call;
        status = mc_cache_serve(h, a, &choice, kind != MC_KIND_ONCE, asked->number.own, &c);
        h->calls.making = NULL;
    }
    if (status) {
        mc_return_memory(h, asked->staging);
        return mc_call_refused(h, &(mc_refused_t){asked->number, false, false}, status);
    }
    mc_run_t *const r = &c->run;
    r->staging = asked->staging;
    mc_run_sign(r, mc_digest_of(h, a, asked->is_barrier), choice.candidate);
    if (h->hooks->compare) /* it bounds the lead, and calls that it ends count differently */
        status = h->hooks->compare(r, &call, asked->number.check);
    else
        mc_lead_call(h, mc_lead_bytes(h, a), r);
    if (!status && !r->head.why)
        status =
            a->in_counts ? mc_counts_bind(r, a, asked->number.counts) : mc_cache_bind(r, a, NULL);
    if (status)
        status = mc_lead_refused(h, asked->number.own, false, status);
    else if (kind != MC_KIND_ONCE)
        mc_cache_note(c, asked->given, kind, choice.left, mc_lead_bytes(h, a));
    if (adapted == MC_ADAPT_TIMED)
        mc_adapt_time(c, !asked->is_nonblocking);
    return start(r, status, request);
}

/* Persistent requests ----------------------------------------------------------------------------- */

static void release(meshcoll_request_t *r)
{
    mc_lead_drop(mc_persistent_of(r));
    mc_run_destroy(r);
}

const mc_request_kind_t mc_persistent_kind = {
    .bytes = sizeof(mc_persistent_t), MC_RUN, .release = release};

static int bind_own(mc_run_t *r, const meshcoll_args_t *a, uint32_t counts)
{
    mc_operands_t operands = mc_operands_of(a);
    if (!r->plan)
        return MESHCOLL_OK;
    if (a->in_counts)
        return mc_counts_bind(r, a, counts);
    int status = mc_args_own_counts(r->head.mesh, a, &operands);
    if (!status)
        status = mc_run_bind(r, &operands);
    if (!status)
        mc_huge_pages(&r->executor);
    return status;
}

/* Of a call that is refused before it is compared. */
static int refuse(meshcoll_t *h, mc_numbers_t number, int status)
{
    return mc_call_refused(h, &(mc_refused_t){number, true, false}, status);
}

/* A request with its numbers, planned where it has elements. */
static int make_own(meshcoll_t *h, const mc_request_kind_t *kind, const mc_call_args_t *asked,
                    const mc_ranked_t *choice, mc_persistent_t **own)
{
    const meshcoll_args_t *const a = &asked->args;
    mc_run_t *r;
    int status = mc_run_make(h, kind, a, choice, &r);
    if (status)
        return status;
    r->head.persistent = true;
    r->head.number = asked->number.own;
    r->workspace = &r->own;
    mc_run_sign(r, mc_digest_of(h, a, asked->is_barrier), 0);
    *own = (mc_persistent_t *)r;
    status = a->count > 0 ? mc_run_plan(r, a) : MESHCOLL_OK;
    if (!status)
        status = mc_lead_persistent(*own, a);
    if (status)
        mc_request_drop(&r->head);
    return status;
}

int mc_call_persist(meshcoll_t *h, const mc_call_args_t *asked, const mc_request_kind_t *kind,
                    meshcoll_request_t **request)
{
    const meshcoll_args_t *const a = &asked->args;
    const mc_numbers_t number = asked->number;
    const mc_choice_key_t key = mc_cache_entry(h, a, asked->is_barrier).key;
    mc_ranked_t best;
    mc_persistent_t *own;
    int status = mc_cache_choose(h, a, asked->is_barrier, &best);
    if (status)
        return refuse(h, number, status);
    mc_adapt_recall(h, &key, &best);
    const mc_description_t call = {.args = a,
                                   .strategy = &best.strategy,
                                   .number = number.own,
                                   .is_barrier = asked->is_barrier};
    h->calls.making = &call;
    status = make_own(h, kind, asked, &best, &own);
    h->calls.making = NULL;
    if (status)
        return refuse(h, number, status);
    mc_run_t *const r = &own->run;
    if (h->hooks->compare)
        status = h->hooks->compare(r, &call, number.check);
    if (!status && !r->head.why)
        status = bind_own(r, a, number.counts);
    if (status) {
        status = mc_lead_refused(h, number.own, true, status);
        mc_request_drop(&r->head);
        return status;
    }
    *request = &r->head;
    return MESHCOLL_OK;
}

/* A run may be complete as soon as it has started. */
__attribute__((noinline)) static void notify_complete(meshcoll_request_t *r, int status)
{
    if (!status && !r->running)
        mc_callback_due(r);
}

/* May a run of a persistent request start? Not `running`: that depends on the progress of other ranks, so that ranks
 * would disagree on which starts are refused. */
static int check_start(const meshcoll_request_t *r)
{
    if (r->kind->blocks && mc_callback_check("meshcoll_start of a request on device memory"))
        return MESHCOLL_ERR_INVALID_ARG;
    return r->active ? mc_fail(MESHCOLL_ERR_INVALID_ARG,
                               "meshcoll_start: the request was started before, "
                               "and that run has not been waited for: wait first")
                     : MESHCOLL_OK;
}

static int refuse_start(meshcoll_request_t *r, int status)
{
    const int broken = mc_failure_check(r->mesh);
    return broken ? broken : mc_failure_refused_start(r, status);
}

static int start_own(meshcoll_request_t *r)
{
    const mc_persistent_t *const own = mc_persistent_of(r);
    mc_lead_t *const lead = own->lead;
    if (!lead) /* it is not started here, and says so */
        return refuse_start(r, r->kind->start(r));
    lead->n_starts++;
    const int status = check_start(r);
    if (status)
        return refuse_start(r, status);
    if ((lead->left -= own->bytes) < 0)
        mc_lead_throttle(r->mesh, lead, own->bytes, mc_run_of(r));
    return mc_request_start(r);
}

int meshcoll_start(meshcoll_request_t *request)
{
    if (!request)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_start: request is NULL");
    if (!request->mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_start: the request's mesh is destroyed");
    if (!request->persistent)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_start: only a persistent request can be started: make one by "
                       "meshcoll_init or, for example, meshcoll_allreduce_init");
    meshcoll_t *const h = request->mesh;
    mc_lock(h);
    const int status = start_own(request);
    if (request->callback.function)
        notify_complete(request, status);
    return mc_leave(h, status);
}
