#include "runtime/diagnose/check.h"

#include "runtime/call/cache.h"
#include "runtime/call/counts.h"
#include "runtime/call/leads.h"
#include "runtime/call/numbers.h"
#include "runtime/connect/connections.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>
#include <string.h>

enum { SENTENCE = 400, ELEMENTS = sizeof(mc_fingerprint_t) / sizeof(int64_t) };

/* One comparison: for a request, which is held, or for a caller who waits until it has ended. */
typedef struct mc_check {
    meshcoll_request_t *of; /* NULL: none */
    bool waited;            /* its caller frees it */
    bool ended;
    int status;
    mc_differ_t differ; /* of ERR_MISMATCH */
    char why[SENTENCE]; /* ranks disagree; else "" */
    mc_fingerprint_t own, all[];
} mc_check_t;

/* The allgather's strategy, which depends on nothing but the mesh and its links. */
static int choose(const meshcoll_t *h, mc_strategy_t *strategy)
{
    const mc_pacing_t pacing = mc_handle_pacing(h);
    const mc_planner_query_t query = {.bytes =
                                          (double)sizeof(mc_fingerprint_t) * (double)h->mesh.size,
                                      .max_segments = 1,
                                      .pacing = &pacing};
    mc_ranked_t best;
    const int status = mc_planner_best(MESHCOLL_ALLGATHER, &h->mesh, &h->links, &query, &best);
    if (!status)
        *strategy = best.strategy;
    return status;
}

static meshcoll_args_t args_of(mc_check_t *c)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = MESHCOLL_ALLGATHER,
                             .in = &c->own,
                             .out = c->all,
                             .count = ELEMENTS,
                             .datatype = MESHCOLL_INT64,
                             .strategy = "MESHCOLL_CHECK's"}; /* a name for MESHCOLL_EXPLAIN */
}

/* Operation numbers that a call takes besides those of any call. */
static uint64_t calls_in(const mc_fingerprint_t *f)
{
    return f->kind == MC_ASKS_GROUP || f->kind == MC_ASKS_REFUSED ? f->count : 0;
}

static mc_differ_t differ_in(const mc_check_t *c, int32_t n)
{
    mc_differ_t differ = MC_DIFFER_ELSE;
    for (int32_t i = 0; i < n; i++) {
        if (calls_in(&c->all[i]) != calls_in(&c->all[0]))
            return MC_DIFFER_NUMBERS;
        if (c->all[i].kind == MC_ASKS_REFUSED)
            differ = MC_DIFFER_REFUSED;
    }
    return differ;
}

static int compare(mc_check_t *c, int32_t n)
{
    mc_text_t text = mc_text(c->why, sizeof c->why);
    for (int32_t i = 1; i < n; i++) {
        if (mc_fingerprint_same(&c->all[0], &c->all[i]))
            continue;
        mc_fingerprint_print(c->all, NULL, n, &text);
        c->differ = differ_in(c, n);
        return MESHCOLL_ERR_MISMATCH;
    }
    return MESHCOLL_OK;
}

/* The held request --------------------------------------------------------------------------------- */

/* What has no plan ends with the comparison: with the next poll. */
static void end_unplanned(meshcoll_request_t *r, int status)
{
    r->executor.state = status ? MC_FAILED : MC_IDLE;
    r->executor.status = status;
    if (!r->running)
        return;
    if (!status)
        r->status = MESHCOLL_OK;
    mc_ready_mark(&r->ready);
}

static void let_go(meshcoll_request_t *r, const mc_check_t *c)
{
    r->check = NULL;
    r->status_of_check = c->status;
    if (!r->plan)
        end_unplanned(r, c->status);
    mc_executor_let_go(&r->executor);
    if (c->status) {
        free(r->mismatch);
        r->mismatch = strdup(c->why);
        r->why = r->mismatch ? r->mismatch : meshcoll_status_string(c->status);
        if (r->plan)
            mc_executor_fail(&r->executor, c->status);
    }
    if (r->exchange)
        mc_counts_checked(r);
    if (r->released && !r->running)
        mc_request_drop(r);
}

/* All fingerprints are here, or the mesh has failed or is closed. */
static void gathered(meshcoll_request_t *x)
{
    meshcoll_t *const h = x->mesh;
    mc_check_t *const c = x->check;
    c->status = x->status ? x->status : compare(c, h->mesh.size);
    c->ended = true;
    x->check = NULL;
    x->kind = &mc_call_kind;
    x->released = true;
    if (h && c->of && x->status == MESHCOLL_OK)
        let_go(c->of, c);
    else if (c->of)
        c->of->check = NULL;
    if (h)
        mc_request_finish(x);
    else /* its closing releases it */
        x->running = false;
    if (h && c->status == MESHCOLL_ERR_MISMATCH && c->differ == MC_DIFFER_NUMBERS) {
        (void)mc_fail(c->status, "%s", c->why);
        mc_failure_break(h, c->status);
    }
    if (!c->waited)
        free(c);
}

static const mc_request_kind_t gather_kind = {.finish = gathered, .internal = true};

/* Beginning ---------------------------------------------------------------------------------------- */

static int prepare(meshcoll_t *h, mc_check_t *c, uint32_t number, meshcoll_request_t **gather)
{
    const meshcoll_args_t args = args_of(c);
    mc_strategy_t strategy;
    meshcoll_request_t *x;
    int status = choose(h, &strategy);
    if (!status)
        status = mc_cache_prepare(h, &args, &strategy, number, &x);
    if (status)
        return status;
    status = mc_cache_bind(x, &args, NULL);
    if (!status)
        status = mc_request_start(x);
    if (status) {
        mc_request_drop(x);
        return status;
    }
    *gather = x;
    return MESHCOLL_OK;
}

/* Peers would wait for the fingerprint of a rank that cannot send it. */
static int begin(meshcoll_t *h, meshcoll_request_t *of, const mc_fingerprint_t *f, uint32_t number,
                 mc_check_t **check)
{
    mc_check_t *const c = calloc(1, sizeof *c + (size_t)h->mesh.size * sizeof c->all[0]);
    meshcoll_request_t *x;
    int status = c ? MESHCOLL_OK : mc_fail_memory("a comparison of calls");
    if (!status) {
        c->of = of;
        c->own = *f;
        c->waited = check != NULL;
        status = prepare(h, c, number, &x);
    }
    if (status) {
        free(c);
        mc_failure_break(h, status);
        return mc_fail(h->job->failure.status, "%s", h->job->failure.why);
    }
    x->check = c;
    x->kind = &gather_kind;
    if (of) {
        of->check = c;
        mc_executor_hold(&of->executor);
    }
    if (check)
        *check = c;
    if (!x->running)
        gathered(x);
    return MESHCOLL_OK;
}

int mc_check_call(meshcoll_request_t *r, const mc_description_t *call, uint32_t number)
{
    const mc_fingerprint_t f = mc_fingerprint_of(r->mesh, call);
    return number ? begin(r->mesh, r, &f, number, NULL) : MESHCOLL_OK;
}

int mc_check_wait(meshcoll_t *h, const mc_fingerprint_t *f, uint32_t number, mc_differ_t *differ)
{
    mc_check_t *c;
    mc_waiting_t waiting = {0};
    int status = begin(h, NULL, f, number, &c);
    if (status)
        return status;
    while (!c->ended)
        mc_wait_turn(h, &waiting);
    status = c->status;
    *differ = c->differ;
    if (status && c->why[0])
        (void)mc_fail(status, "%s", c->why);
    else if (status)
        (void)mc_failure_check(h);
    free(c);
    return status;
}

int mc_check_call_now(meshcoll_t *h, const mc_description_t *call, uint32_t number)
{
    mc_differ_t differ;
    const mc_fingerprint_t f = mc_fingerprint_of(h, call);
    return mc_check_wait(h, &f, number, &differ);
}

/* Takes part in the comparison, and keeps the text of the error. */
static int compare_refused(meshcoll_t *h, const mc_refused_t *refused, int status)
{
    char why[SENTENCE];
    mc_text_t text = mc_text(why, sizeof why);
    mc_differ_t differ;
    const mc_fingerprint_t f = mc_fingerprint_refused(h, refused->number.own);
    mc_text_add(&text, "%s", meshcoll_last_error());
    if (refused->waits)
        (void)mc_check_wait(h, &f, refused->number.check, &differ);
    else
        (void)begin(h, NULL, &f, refused->number.check, NULL);
    return mc_fail(status, "%s", why);
}

int mc_check_refused(meshcoll_t *h, const mc_refused_t *refused, int status)
{
    return h->job->failure.status
               ? mc_lead_refused(h, refused->number.own, refused->persistent, status)
               : compare_refused(h, refused, status);
}
