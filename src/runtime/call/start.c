/* The way of a call that was not made before: its check, its choice, and a request of the cache, which it binds and
 * starts; and persistent requests, which are the caller's. */
#include "runtime/call/call.h"

#include "runtime/call/adapt.h"
#include "runtime/call/args.h"
#include "runtime/call/leads.h"
#include "runtime/call/request.h"
#include "runtime/handle/digest.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"

#include <stdlib.h>

int mc_call_check(meshcoll_t *h, const meshcoll_args_t *given, const char *host_only,
                  mc_call_t *call)
{
    call->is_barrier = given->in == &h->calls.arrived;
    call->number = mc_take_numbers(h, call->is_persistent, mc_call_exchanges(given));
    int status = call->number.status;
    if (!status)
        status = mc_args_check(h, given, &call->args);
    return status ? status : mc_call_memory(h, call, host_only);
}

/* Of what kind calls like this find their request bound, if at all. */
static uint64_t kind_of(const meshcoll_t *h, const mc_call_t *call)
{
    const bool notes = call->given && !h->hooks->compare && !h->hooks->made;
    return notes ? mc_cache_kind(call->given, call->is_barrier) : MC_KIND_ONCE;
}

/* Counts a call, or has it compared, and binds its request. Where it fails the other ranks are told. */
static int bind(meshcoll_t *h, mc_run_t *r, const mc_call_t *call)
{
    int status = MESHCOLL_OK;
    if (h->hooks->compare) /* it bounds the lead, and calls that it ends count differently */
        status = h->hooks->compare(h, call, r);
    else if (!call->is_persistent)
        mc_lead_call(h, mc_lead_bytes(h, &call->args), call->number.own, r->executor.digest, r);
    if (!status && !r->head.why)
        status = call->args.in_counts ? mc_counts_bind(r, call) : mc_run_bind(r, &call->args, NULL);
    return status ? mc_lead_refused(h, call->number.own, call->is_persistent, status) : status;
}

int mc_call_start(meshcoll_t *h, mc_call_t *call, meshcoll_request_t **request)
{
    const uint64_t kind = kind_of(h, call);
    mc_cached_t *c;
    int status = mc_adapt_choose(h, call);
    if (!status && call->is_deferred)
        status = mc_adapt_defer(h, call, &c);
    else if (!status)
        status = mc_cache_serve(h, call, kind != MC_KIND_ONCE, &c);
    if (status) {
        mc_return_memory(h, call->staging);
        return mc_call_refused(h, call, status);
    }
    mc_run_t *const r = &c->run;
    r->staging = call->staging;
    if (call->is_deferred)
        return mc_call_begin(r, MESHCOLL_OK, request);
    mc_run_sign(r, mc_digest_of(h, &call->args, call->is_barrier), call->candidate);
    /* before it is bound, which may wait: what calls of callbacks unbind then, and no longer time, is this one too */
    if (kind != MC_KIND_ONCE)
        mc_cache_note(c, call, kind, mc_lead_bytes(h, &call->args));
    if (call->is_timed)
        mc_adapt_time(c, call->waits);
    status = bind(h, r, call);
    if (status)
        c->kind = MC_KIND_ONCE;
    return mc_call_begin(r, status, request);
}

/* Persistent requests ----------------------------------------------------------------------------- */

static void end_study(mc_persistent_t *own)
{
    mc_study_t *const s = own->lead && own->lead->words ? mc_study_of(own->lead) : NULL;
    if (!s)
        return;
    own->lead->words = NULL;
    mc_adapt_leave(own->run.head.mesh, s);
    for (int32_t c = 0; c < MC_CANDIDATES; c++)
        if (s->text[c] != own->run.text)
            free(s->text[c]);
    mc_call_unkeep(&s->kept);
    free(s);
}

/* `ns`: that call->best takes, as an earlier job has found; 0: none has. A function of its own, as a lesson is not to lie
 * on the stack while a request is planned. */
__attribute__((noinline)) static int begin_study(meshcoll_t *h, mc_persistent_t *own,
                                                 const mc_call_t *call, int64_t ns)
{
    mc_study_t *const s = calloc(1, sizeof *s);
    if (!s)
        return mc_fail_memory("what a persistent request learns");
    s->lesson = mc_lesson(&call->key, &call->best, ns);
    s->text[0] = own->run.text;
    own->lead->words = s->lesson.words;
    own->left = s->lesson.left;
    mc_list_append(&h->calls.adapt->studies, &s->node);
    return mc_call_keep(h, call, &s->kept);
}

void mc_persistent_release(meshcoll_request_t *r)
{
    end_study(mc_persistent_of(r));
    mc_lead_drop(mc_persistent_of(r));
    mc_run_destroy(r);
}

const mc_request_kind_t mc_persistent_kind = {
    .bytes = sizeof(mc_persistent_t), MC_RUN, .release = mc_persistent_release};
static const mc_request_kind_t timed_kind = {
    .bytes = sizeof(mc_persistent_t), MC_TIMED, .release = mc_persistent_release};

/* A request with its number, planned where it has elements. `ns` as above. */
static int make_own(meshcoll_t *h, const mc_request_kind_t *kind, const mc_call_t *call, int64_t ns,
                    mc_persistent_t **own)
{
    mc_run_t *r;
    int status = mc_run_make(h, kind, call, &r);
    if (status)
        return status;
    r->head.persistent = true;
    r->workspace = &r->own;
    *own = (mc_persistent_t *)r;
    (*own)->left = UINT64_MAX;
    status = call->args.count > 0 ? mc_run_plan(r, call) : MESHCOLL_OK;
    mc_run_sign(r, mc_digest_of(h, &call->args, call->is_barrier), 0);
    if (!status)
        status = mc_lead_persistent(*own, &call->args);
    if (!status && kind == &mc_persistent_kind && mc_adapt_learns(h, &call->key))
        status = begin_study(h, *own, call, ns);
    if (status)
        mc_request_drop(&r->head);
    return status;
}

int mc_call_persist(meshcoll_t *h, mc_call_t *call, const mc_request_kind_t *kind,
                    meshcoll_request_t **request)
{
    mc_persistent_t *own;
    int64_t ns = 0;
    int status = mc_cache_choose(h, call);
    if (!status) {
        ns = mc_adapt_recall(h, &call->key, &call->best);
        status = make_own(h, kind, call, ns, &own);
    }
    if (status)
        return mc_call_refused(h, call, status);
    status = bind(h, &own->run, call);
    if (status)
        mc_request_drop(&own->run.head);
    else
        *request = &own->run.head;
    return status;
}

/* Plans and binds it for another candidate. */
static int plan_anew(mc_run_t *r, mc_study_t *s, int32_t candidate)
{
    const uint32_t digest = r->executor.digest;
    int status = MESHCOLL_OK;
    mc_run_unplan(r);
    r->choice = s->lesson.learner.candidate[candidate];
    if (s->text[candidate])
        r->text = s->text[candidate];
    else
        status = mc_run_choose(r, &r->choice);
    if (status)
        return status;
    s->text[candidate] = r->text; /* the caller may have the others */
    status = mc_run_plan(r, &s->kept.call);
    mc_run_sign(r, digest, candidate);
    return status ? status : mc_run_bind(r, &s->kept.call.args, NULL);
}

/* Of the start to come, which has the words that it must wait for. */
static int take_turn(meshcoll_t *h, mc_persistent_t *own)
{
    mc_lead_t *const lead = own->lead;
    mc_study_t *const s = mc_study_of(lead);
    mc_lesson_t *const lesson = &s->lesson;
    mc_learn_turn_t turn = {0};
    const int status = mc_adapt_ask(h, lesson, &turn);
    if (status)
        return status;
    own->left = turn.calls;
    own->run.head.kind = &mc_persistent_kind;
    if (turn.timed)
        mc_adapt_time_as(&own->run, &timed_kind, false);
    if (turn.agrees) { /* by the barrier that this start begins */
        mc_learner_tell(&lesson->learner, lesson->words);
        lead->tells = true;
        mc_lead_end(lead);
    }
    const bool stays = turn.candidate == lesson->candidate && own->run.plan;
    lesson->candidate = turn.candidate;
    return stays ? MESHCOLL_OK : plan_anew(&own->run, s, turn.candidate);
}

/* Deferred starts: without a plan, until all ranks have told their times. */
static int start_deferred(meshcoll_request_t *r)
{
    ((mc_run_t *)r)->executor.state = MC_PENDING;
    return MESHCOLL_IN_PROGRESS;
}

static int end_deferral(meshcoll_request_t *r, uint32_t events)
{
    mc_persistent_t *const own = (mc_persistent_t *)r;
    mc_lead_t *const lead = own->lead;
    (void)events;
    if (!mc_executor_has_reached(&own->run.executor))
        return MESHCOLL_IN_PROGRESS;
    lead->awaited = false;
    const int status = take_turn(r->mesh, own);
    if (status)
        return status;
    mc_executor_await(&own->run.executor, &lead->synced, lead->needed, &lead->waiting);
    return mc_run_begin(r);
}

static const mc_request_kind_t deferred_start_kind = {.bytes = sizeof(mc_persistent_t),
                                                      .is_run = true,
                                                      .start = start_deferred,
                                                      .advance = end_deferral,
                                                      .cancel = mc_run_cancel,
                                                      .release = mc_persistent_release};

/* Of a start at which the learner is asked. What fails ends the mesh, as other ranks go on with the next candidate. */
__attribute__((noinline)) static void learn(meshcoll_t *h, mc_persistent_t *own)
{
    mc_lead_t *const lead = own->lead;
    mc_run_t *const r = &own->run;
    const bool waits = mc_learner_waits(&mc_study_of(lead)->lesson.learner);
    own->left = 1;
    if (h->job->failure.status)
        return;
    if (waits && (int32_t)(lead->synced - lead->told) <= 0) {
        mc_run_unplan(r);
        mc_executor_await(&r->executor, &lead->synced, lead->told + 1, &lead->waiting);
        r->head.kind = &deferred_start_kind;
        lead->awaited = true;
        return;
    }
    const int status = take_turn(h, own);
    if (status)
        mc_failure_break(h, status);
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
    mc_persistent_t *const own = mc_persistent_of(r);
    mc_lead_t *const lead = own->lead;
    if (!lead) /* it is not started here, and says so */
        return refuse_start(r, r->kind->start(r));
    lead->n_starts++;
    const int status = check_start(r);
    if (status)
        return refuse_start(r, status);
    if (--own->left == 0)
        learn(r->mesh, own);
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
