#include "runtime/call/adapt.h"

#include "base/system/log.h"
#include "base/table.h"
#include "runtime/call/args.h"
#include "runtime/call/leads.h"
#include "runtime/call/request.h"
#include "runtime/choose/candidates.h"
#include "runtime/handle/calibrated.h"
#include "runtime/handle/digest.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>
#include <string.h>

/* Agreements ------------------------------------------------------------------------------------------ */

_Static_assert((int)MC_LEARN_WORDS + MC_LEAD_WORDS == (int)MC_MAXIMA,
               "a lead's words, and a learner's");

static void serve_deferred(meshcoll_t *h);
static int choose_in_line(meshcoll_t *h, mc_call_t *call);

/* Its learner may be gone. */
static int finish(meshcoll_request_t *r)
{
    const mc_maxima_t *const x = (const mc_maxima_t *)r;
    meshcoll_t *const h = r->mesh;
    if (!h)
        return r->status;
    h->leads.n_barriers--;
    if (r->status)
        return r->status;
    const mc_lessons_t *const lessons = &h->calls.adapt->lessons;
    h->calls.adapt->done++;
    mc_busy_reached(&h->calls.adapt->pending);
    for (int32_t i = 0; i < lessons->n; i++) {
        mc_lesson_t *const lesson = lessons->lesson[i];
        if (lesson->agreement != x->which)
            continue;
        memcpy(lesson->words, x->words, sizeof lesson->words);
        lesson->has_words = true;
    }
    serve_deferred(h);
    return MESHCOLL_OK;
}

static const mc_request_kind_t agreement_kind = {MC_OF_MAXIMA, .finish = finish};

bool mc_adapt_is_unawaited(const meshcoll_request_t *r)
{
    return r->kind == &agreement_kind && !r->mesh->calls.adapt->deferred.first;
}

static int find(const meshcoll_t *h, const mc_lesson_t *lesson,
                mc_ranked_t candidate[MC_CANDIDATES - 1], int32_t *n)
{
    return mc_candidates_find(&h->mesh, &h->links, &lesson->key, &lesson->learner.candidate[0],
                              MC_CANDIDATES - 1, candidate, n);
}

/* Of a GPU, which this rank's can run with the memory that it has: by the words of those that have no times yet. */
static void tell_candidates(meshcoll_t *h, const mc_lesson_t *lesson, const mc_call_t *call,
                            int64_t words[MC_LEARN_WORDS])
{
    mc_ranked_t candidate[MC_CANDIDATES - 1];
    mc_call_t tried = *call;
    int32_t n = 0;
    if (!lesson->key.memory || lesson->learner.n > 1 || find(h, lesson, candidate, &n))
        return;
    for (int32_t i = 0; i < n; i++) {
        tried.best = candidate[i];
        if (h->job->device->can_try(h, &tried))
            words[1 + i] = 1;
    }
}

static int begin_agreement(meshcoll_t *h, mc_lesson_t *lesson, const mc_call_t *call)
{
    mc_adapt_t *const t = h->calls.adapt;
    mc_maxima_t *x;
    const int status = mc_maxima_take(h, &agreement_kind, &x);
    if (status) { /* calls to come would wait for it */
        mc_failure_break(h, status);
        return status;
    }
    x->which = lesson->agreement = ++t->begun;
    lesson->has_words = false;
    mc_learner_tell(&lesson->learner, x->words);
    tell_candidates(h, lesson, call, x->words);
    return mc_maxima_start(x, MC_AGREEMENT_NUMBER, &t->done, x->which - 1, &t->pending);
}

/* Choosing -------------------------------------------------------------------------------------------- */

bool mc_adapt_learns(const meshcoll_t *h, const mc_choice_key_t *key)
{
    const bool forced = key->strategy || (h->choice.is_forced[key->collective] && !key->unforced);
    return h->calls.adapt && key->bytes > 0 && !forced && !key->one_line;
}

static bool is_ready(const mc_lesson_t *lesson)
{
    return !lesson || lesson->left > 1 || !mc_learner_waits(&lesson->learner) || lesson->has_words;
}

static int offer(const meshcoll_t *h, mc_lesson_t *lesson)
{
    mc_ranked_t candidate[MC_CANDIDATES - 1];
    int32_t n, left = 0;
    const int status = find(h, lesson, candidate, &n);
    if (status)
        return status;
    for (int32_t i = 0; i < n; i++)
        if (!lesson->key.memory || lesson->words[1 + i] < INT64_MAX)
            candidate[left++] = candidate[i];
    mc_learner_offer(&lesson->learner, candidate, left);
    return MESHCOLL_OK;
}

/* Right links are not wrong by so much (docs/lab-notes/calibration.md). And so much is told. */
static const double FAR = 4, OFF = 2;

static void tell_off(const meshcoll_t *h, const mc_lesson_t *lesson, double took)
{
    mc_log(
        MC_LOG_WARN,
        "%s of %s on %s takes %s, and its links predict %s: they are off by more than 2, so that "
        "choices may be wrong until calls have learned; \"meshcoll tune\" measures links",
        meshcoll_collective_name(lesson->key.collective),
        mc_print_bytes((double)lesson->key.bytes).text, h->text, mc_print_seconds(took).text,
        mc_print_seconds(lesson->learner.candidate[0].seconds).text);
}

/* By the first times of the planner's choice. Links are too slow only if the rank that waited longest for others took
 * less, and too fast only if the last one took more, on a core of its own. Other work never makes a call faster: one that
 * takes far less time tells that links were measured beside it. Not of calls with a root, where ranks that only send are
 * done early; not on links of another mesh, nor on device memory. */
static void doubt_links(meshcoll_t *h, mc_lesson_t *lesson)
{
    const mc_learner_t *const l = &lesson->learner;
    const double most = (double)lesson->words[0] * 1e-9;
    const double least = -(double)lesson->words[MC_CANDIDATES] * 1e-9;
    const double predicted = l->candidate[0].seconds;
    if (l->phase != MC_LEARN_WANTS || h->ranks.job_rank || lesson->key.memory ||
        mc_moves[lesson->key.collective].rooted)
        return;
    if (FAR * most < predicted)
        mc_calibrated_drop(h->job);
    lesson->links_off =
        OFF * most < predicted || (least > OFF * predicted && !h->job->oversubscribed);
    if (!lesson->links_off || h->calls.adapt->has_told || mc_comm_rank_of(&h->order, h->rank) > 0)
        return;
    h->calls.adapt->has_told = true;
    tell_off(h, lesson, OFF * most < predicted ? most : least);
}

/* Of the call to come. */
static mc_learn_turn_t take_turn(mc_adapt_t *t, mc_lesson_t *lesson)
{
    const mc_learn_turn_t turn = mc_learner_next(&lesson->learner);
    lesson->left = turn.calls;
    lesson->asked_for += turn.calls;
    if (turn.timed && !lesson->key.memory) {
        t->timed.request = NULL; /* one that still runs is of another lesson */
        t->timed.lesson = lesson;
        t->timed.candidate = turn.candidate;
    }
    return turn;
}

/* If it fails on all ranks, the next call asks again. */
int mc_adapt_ask(meshcoll_t *h, mc_lesson_t *lesson, mc_learn_turn_t *turn)
{
    mc_learner_t *const l = &lesson->learner;
    int status = MESHCOLL_OK;
    if (mc_learner_waits(l)) {
        mc_learner_agree(l, lesson->words);
        doubt_links(h, lesson);
        lesson->has_words = false;
    }
    if (l->phase == MC_LEARN_WANTS)
        status = offer(h, lesson);
    if (!status)
        *turn = take_turn(h->calls.adapt, lesson);
    return status;
}

int64_t mc_adapt_recall(const meshcoll_t *h, const mc_choice_key_t *key, mc_ranked_t *choice)
{
    const mc_known_t *const known =
        mc_adapt_learns(h, key) ? mc_known_find(&h->calls.adapt->known, key) : NULL;
    if (!known)
        return 0;
    const mc_ranked_t best = {.strategy = known->strategy,
                              .seconds = mc_strategy_seconds(&known->strategy, &h->mesh, &h->links,
                                                             key->root, (double)key->bytes)};
    if (!mc_candidates_allow(&h->mesh, &h->links, key, choice, &best))
        return 0;
    *choice = best;
    return known->ns;
}

/* call->best: the planner's. NULL: there is no room, or an error. */
static mc_lesson_t *add(const meshcoll_t *h, const mc_call_t *call, int *status)
{
    mc_adapt_t *const t = h->calls.adapt;
    mc_ranked_t first = call->best;
    const int64_t ns = mc_adapt_recall(h, &call->key, &first);
    mc_lesson_t *const lesson = mc_lessons_add(&t->lessons, &call->key, &first, ns, status);
    if (lesson)
        lesson->learner.is_late = call->on_device;
    return lesson;
}

/* Adds a lesson, or counts a call that finds no room. Where that makes room, this call takes it: bound without a lesson
 * it would be counted among those without room on this rank, while a rank that does not find it bound adds one. */
static mc_lesson_t *add_or_count(meshcoll_t *h, const mc_call_t *call, int *status)
{
    mc_adapt_t *const t = h->calls.adapt;
    mc_lesson_t *const lesson = add(h, call, status);
    if (lesson || *status || --t->lessons.others > 0 || !mc_lessons_sweep(&t->lessons))
        return lesson;
    t->timed.request = NULL;
    mc_cache_unbind(h, NULL);
    return add(h, call, status);
}

/* Of a call that is not deferred, or is no more. call->best: the planner's, at least where the key has no lesson. */
static int choose(meshcoll_t *h, mc_lesson_t *lesson, mc_call_t *call)
{
    mc_adapt_t *const t = h->calls.adapt;
    mc_learn_turn_t turn = {0};
    int status = MESHCOLL_OK;
    if (!lesson)
        lesson = add_or_count(h, call, &status);
    call->left = lesson ? &lesson->left : &t->lessons.others;
    call->is_chosen = true;
    if (!lesson)
        return status;
    turn.candidate = lesson->candidate;
    if (lesson->left > 1)
        lesson->left--;
    else
        status = mc_adapt_ask(h, lesson, &turn);
    if (!status && turn.agrees)
        status = begin_agreement(h, lesson, call);
    if (status)
        return status;
    if (turn.candidate != lesson->candidate)
        mc_cache_unbind(h, &lesson->left);
    lesson->candidate = turn.candidate;
    call->best = lesson->learner.candidate[turn.candidate];
    call->candidate = turn.candidate;
    call->key.learned = true;
    call->is_timed = turn.timed;
    return MESHCOLL_OK;
}

/* For a call without a lesson. Of one on device memory the cache has no request that keeps the choice. */
static int look(meshcoll_t *h, mc_call_t *call)
{
    return call->on_device ? mc_cache_choose(h, call) : mc_cache_look(h, call);
}

static int choose_now(meshcoll_t *h, mc_lesson_t *lesson, mc_call_t *call)
{
    const int status = lesson ? MESHCOLL_OK : look(h, call);
    if (status || !call->is_aside)
        return status ? status : choose(h, lesson, call);
    call->candidate = lesson ? lesson->learner.best : 0;
    if (lesson)
        call->best = lesson->learner.candidate[call->candidate];
    return MESHCOLL_OK;
}

int mc_adapt_choose(meshcoll_t *h, mc_call_t *call)
{
    mc_adapt_t *const t = h->calls.adapt;
    mc_cache_key(h, call);
    call->left = &h->calls.unlearned;
    if (!mc_adapt_learns(h, &call->key))
        return look(h, call);
    if (call->on_device && t->begun != t->done) /* a program that enqueues may wait for no call */
        (void)mc_job_progress(h->job);
    mc_lesson_t *const lesson = mc_lessons_find(&t->lessons, &call->key);
    if (!t->deferred.first && (call->is_aside || is_ready(lesson)))
        return choose_now(h, lesson, call);
    call->is_deferred = !call->on_device;
    return call->is_deferred ? MESHCOLL_OK : choose_in_line(h, call);
}

/* Times ----------------------------------------------------------------------------------------------- */

/* What is timed, if this call is; NULL: it is not timed any more. */
static mc_adapt_t *timed_of(const meshcoll_request_t *r)
{
    mc_adapt_t *const t = r->mesh ? r->mesh->calls.adapt : NULL;
    return t && t->timed.request == r ? t : NULL;
}

/* What runs at the same time takes its share of the links. */
int mc_timed_begin(meshcoll_request_t *r)
{
    mc_adapt_t *const t = timed_of(r);
    if (t && r->mesh->job->requests.running.first)
        t->timed.request = NULL;
    if (t)
        t->timed.started = mc_now();
    const int status = mc_run_begin(r);
    if (t)
        t->timed.left = mc_now();
    if (t && (t->timed.blocks || status == MESHCOLL_OK))
        t->timed.awaited = t->timed.left;
    return status;
}

/* Is it the last call that was made? Or start: what was started beside one that is awaited at once mostly runs still. */
static bool is_last(const meshcoll_request_t *r)
{
    if (r->persistent)
        return !r->mesh->job->requests.running.first;
    return (r->number + 1) % MC_CALL_NUMBERS == r->mesh->calls.n % MC_CALL_NUMBERS;
}

/* Where the caller does something else before it waits, the time is not the call's. */
int mc_timed_end(meshcoll_request_t *r)
{
    static const double AWAY = 0.125; /* of a time: so little hardly changes a choice */
    mc_adapt_t *const t = timed_of(r);
    if (!t || r->status)
        return r->status;
    const double takes = mc_now() - t->timed.started;
    const double away = t->timed.awaited - t->timed.left;
    if (is_last(r) && t->timed.awaited > 0 && away < AWAY * takes)
        mc_learner_note(&t->timed.lesson->learner, t->timed.candidate, (int64_t)(takes * 1e9));
    t->timed.request = NULL;
    return r->status;
}

void mc_timed_await(meshcoll_request_t *r)
{
    mc_adapt_t *const t = timed_of(r);
    if (t && t->timed.awaited == 0)
        t->timed.awaited = mc_now();
}

void mc_adapt_note(const meshcoll_t *h, const mc_choice_key_t *key, int32_t candidate,
                   double seconds)
{
    mc_adapt_t *const t = h->calls.adapt;
    mc_lesson_t *const lesson = t ? mc_lessons_find(&t->lessons, key) : NULL;
    if (lesson && candidate < lesson->learner.n)
        mc_learner_note(&lesson->learner, candidate, (int64_t)(seconds * 1e9));
}

static const mc_request_kind_t timed_kind = {
    .bytes = sizeof(mc_cached_t), MC_TIMED, .release = mc_cache_release};

void mc_adapt_time_as(mc_run_t *r, const mc_request_kind_t *kind, bool blocks)
{
    mc_adapt_t *const t = r->head.mesh->calls.adapt;
    r->head.kind = kind;
    t->timed.request = &r->head;
    t->timed.blocks = blocks;
    t->timed.awaited = 0;
}

void mc_adapt_time(mc_cached_t *c, bool blocks)
{
    mc_adapt_time_as(&c->run, &timed_kind, blocks);
}

mc_cached_t *mc_adapt_bound(meshcoll_t *h, mc_cached_t *c, bool blocks)
{
    mc_adapt_t *const t = h->calls.adapt;
    const bool learns = t && c->left != &t->lessons.others;
    mc_lesson_t *const lesson = (mc_lesson_t *)((char *)c->left - offsetof(mc_lesson_t, left));
    *c->left = 1; /* it is counted when it chooses */
    if (!learns || !mc_learner_repeats(&lesson->learner)) {
        c->kind = MC_KIND_ONCE; /* so the call may have it again, and makes no other one */
        return NULL;
    }
    (void)take_turn(t, lesson);
    mc_adapt_time(c, blocks);
    return c;
}

/* Deferred calls -------------------------------------------------------------------------------------- */

typedef struct {
    mc_cached_t *served; /* its request, whose task this is; NULL: it waits, on device memory */
    mc_kept_call_t kept; /* planned as when it was made: what is forced may change until it runs */
    uint32_t needed;     /* of the lead: what must be reached before it runs */
    char *known_text;    /* of another strategy, as the caller may have it */
    mc_list_node_t node;
} deferred_t;

static deferred_t *deferred_of(const mc_list_node_t *n)
{
    return n ? (deferred_t *)((char *)n - offsetof(deferred_t, node)) : NULL;
}

/* Those behind the first find none bound. */
static void line_up(meshcoll_t *h, deferred_t *d)
{
    if (!h->calls.adapt->deferred.first)
        mc_cache_unbind(h, NULL);
    mc_list_append(&h->calls.adapt->deferred, &d->node);
}

static void release_deferred(meshcoll_request_t *r)
{
    deferred_t *const d = mc_run_of(r)->task;
    mc_run_of(r)->task = NULL;
    mc_list_remove(&d->node);
    free(d->known_text);
    mc_call_unkeep(&d->kept);
    free(d);
    mc_cache_release(r);
}

static const mc_request_kind_t deferred_kind = {
    .bytes = sizeof(mc_cached_t), MC_RUN, .release = release_deferred};

/* For the choice that it most likely has in the end, so that its plan is there. */
static int take_request(meshcoll_t *h, const mc_call_t *call, const mc_lesson_t *lesson,
                        deferred_t **deferred)
{
    const int32_t candidate = lesson ? lesson->learner.best : 0;
    mc_call_t likely = *call;
    deferred_t *const d = calloc(1, sizeof *d);
    if (!d)
        return mc_fail_memory("a call that waits for an agreement");
    if (lesson)
        likely.best = lesson->learner.candidate[candidate];
    likely.key.learned = lesson;
    const int status = mc_cache_serve(h, &likely, false, &d->served);
    if (status) {
        free(d);
        return status;
    }
    mc_run_t *const r = &d->served->run;
    r->task = d;
    r->head.kind = &deferred_kind;
    mc_run_sign(r, mc_digest_of(h, &call->args, call->is_barrier), candidate);
    *deferred = d;
    return MESHCOLL_OK;
}

int mc_adapt_defer(meshcoll_t *h, const mc_call_t *call, mc_cached_t **request)
{
    const mc_lesson_t *const lesson = mc_lessons_find(&h->calls.adapt->lessons, &call->key);
    mc_call_t planned = *call;
    deferred_t *d = NULL;
    int status = MESHCOLL_OK;
    if (lesson && !mc_known_find(&h->calls.adapt->known, &call->key))
        planned.best = lesson->learner.candidate[0];
    else
        status = mc_cache_look(h, &planned);
    if (!status)
        status = take_request(h, &planned, lesson, &d);
    if (status)
        return status;
    mc_run_t *const r = &d->served->run;
    status = mc_call_keep(h, &planned, &d->kept);
    if (status) {
        release_deferred(&r->head);
        return status;
    }
    mc_executor_hold(&r->executor);
    line_up(h, d);
    mc_lead_call(h, mc_lead_bytes(h, &call->args), call->number.own, r->executor.digest, r);
    d->needed = h->leads.calls.needed;
    *request = d->served;
    return MESHCOLL_OK;
}

/* Lets it go as it was chosen. */
static int let_go(meshcoll_t *h, deferred_t *d)
{
    mc_run_t *const r = &d->served->run;
    const mc_call_t *const call = &d->kept.call;
    const uint32_t digest = r->executor.digest;
    int status = mc_cache_plan(h, d->served, call, &d->known_text);
    if (status)
        return status;
    mc_run_sign(r, digest, call->candidate);
    mc_executor_hold(&r->executor);
    mc_executor_await(&r->executor, &h->leads.calls.synced, d->needed, &h->leads.calls.waiting);
    status = mc_executor_start(&r->executor, r->head.number);
    if (status >= 0)
        status = mc_run_bind(r, &call->args, NULL);
    if (!status)
        mc_executor_let_go(&r->executor);
    return status;
}

static int serve(meshcoll_t *h, deferred_t *d, mc_lesson_t *lesson)
{
    mc_list_remove(&d->node);
    const int status = choose(h, lesson, &d->kept.call);
    return status ? status : let_go(h, d);
}

/* Those that need not wait any more, in their order. A failure ends the mesh. */
static void serve_deferred(meshcoll_t *h)
{
    mc_adapt_t *const t = h->calls.adapt;
    int status = MESHCOLL_OK;
    if (t->serves_deferred)
        return;
    t->serves_deferred = true;
    for (deferred_t *d; !status && (d = deferred_of(t->deferred.first));) {
        mc_lesson_t *const lesson = mc_lessons_find(&t->lessons, &d->kept.call.key);
        if (!d->served || !is_ready(lesson))
            break;
        status = serve(h, d, lesson);
    }
    t->serves_deferred = false;
    if (status)
        mc_failure_break(h, status);
}

/* Callbacks, and other threads, may make calls while it waits: these choose after it. */
static int choose_in_line(meshcoll_t *h, mc_call_t *call)
{
    mc_adapt_t *const t = h->calls.adapt;
    mc_waiting_t waiting = {0};
    deferred_t own = {.served = NULL};
    mc_lesson_t *lesson = NULL;
    line_up(h, &own);
    while (!h->job->failure.status &&
           (t->deferred.first != &own.node ||
            !(is_ready(lesson = mc_lessons_find(&t->lessons, &call->key)) || call->is_aside)))
        mc_wait_turn(h, &waiting);
    int status = mc_failure_check(h);
    if (!status)
        status = choose_now(h, lesson, call);
    mc_list_remove(&own.node);
    if (h->job->failure.status)
        return status;
    serve_deferred(h);
    if (h->job->threads)
        mc_threads_notify(h->job->threads);
    return status;
}

/* Opening --------------------------------------------------------------------------------------------- */

int mc_adapt_open(meshcoll_t *h, const char *mode)
{
    const bool all = mode && strcmp(mode, "all") == 0, off = mode && strcmp(mode, "off") == 0;
    if (mode && !all && !off && strcmp(mode, "on") != 0)
        return mc_fail(MESHCOLL_ERR_PARSE, "MESHCOLL_ADAPT is \"%s\": expected on, all or off",
                       mode);
    if (off || h->hooks->compare || h->mesh.size == 1)
        return MESHCOLL_OK;
    h->calls.adapt = calloc(1, sizeof *h->calls.adapt);
    if (!h->calls.adapt)
        return mc_fail_memory("what calls learn");
    h->calls.ordered = !all;
    mc_lessons_init(&h->calls.adapt->lessons);
    return MESHCOLL_OK;
}

void mc_adapt_free(meshcoll_t *h)
{
    if (!h->calls.adapt)
        return;
    while (h->calls.adapt->deferred.first) /* the caller has them still */
        mc_list_remove(h->calls.adapt->deferred.first);
    while (h->calls.adapt->studies.first)
        mc_list_remove(h->calls.adapt->studies.first);
    mc_lessons_free(&h->calls.adapt->lessons);
    mc_lessons_free(&h->calls.adapt->past);
    free(h->calls.adapt->known.list);
    free(h->calls.adapt);
    h->calls.adapt = NULL;
}
