#include "runtime/diagnose/check.h"

#include "runtime/call/call.h"
#include "runtime/call/leads.h"
#include "runtime/call/request.h"
#include "runtime/connect/connections.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>
#include <string.h>

enum { SENTENCE = 400 };

/* One comparison: for a request, which is held, or for a caller who waits until it has ended. */
typedef struct mc_check {
    mc_run_t *of; /* NULL: none */
    bool waited;  /* its caller frees it */
    bool ended;
    int status;
    mc_differ_t differ; /* of ERR_MISMATCH */
    char why[SENTENCE]; /* ranks disagree; else "" */
    mc_fingerprint_t own, all[];
} mc_check_t;

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
static void end_unplanned(mc_run_t *r, int status)
{
    r->executor.state = status ? MC_FAILED : MC_IDLE;
    r->executor.status = status;
    if (r->head.running)
        mc_ready_mark(&r->head.ready);
}

static void let_go(mc_run_t *r, const mc_check_t *c)
{
    if (!r->plan)
        end_unplanned(r, c->status);
    mc_executor_let_go(&r->executor);
    if (c->status) {
        free(r->mismatch);
        r->mismatch = strdup(c->why);
        r->head.why = r->mismatch ? r->mismatch : meshcoll_status_string(c->status);
        if (r->plan)
            mc_executor_fail(&r->executor, c->status);
    }
    if (r->exchange)
        mc_counts_checked(r);
    if (r->head.released && !r->head.running)
        mc_request_drop(&r->head);
}

/* All fingerprints are here, or the mesh has failed or is closed. The mesh fails where ranks' operation numbers
 * differ. */
static int finish(meshcoll_request_t *x)
{
    meshcoll_t *const h = x->mesh;
    mc_check_t *const c = mc_run_of(x)->task;
    const int ran = x->status;
    int status = ran;
    mc_run_of(x)->task = NULL;
    c->status = ran ? ran : compare(c, h->mesh.size);
    c->ended = true;
    if (c->of && h && !ran)
        let_go(c->of, c);
    else if (c->of)
        c->of->executor.held = false;
    if (c->status == MESHCOLL_ERR_MISMATCH && !ran && c->differ == MC_DIFFER_NUMBERS)
        status = mc_fail(c->status, "%s", c->why);
    if (!c->waited)
        free(c);
    return status;
}

static const mc_request_kind_t gather_kind = {MC_CACHED_RUN, .is_internal = true, .finish = finish};

/* Beginning ---------------------------------------------------------------------------------------- */

/* The strategy depends on nothing but the mesh and its links. */
int mc_check_gather(meshcoll_t *h, const mc_gathered_t *what, const mc_request_kind_t *kind,
                    void *task, mc_run_t **run)
{
    const mc_pacing_t pacing = mc_handle_pacing(h);
    const mc_planner_query_t query = {
        .bytes = (double)what->bytes * (double)h->mesh.size, .max_segments = 1, .pacing = &pacing};
    mc_call_t call = {.args = {.collective = MESHCOLL_ALLGATHER,
                               .in = what->own,
                               .out = what->all,
                               .count = what->bytes / sizeof(int64_t),
                               .datatype = MESHCOLL_INT64,
                               .strategy = what->name},
                      .number.own = what->number};
    const int status = mc_planner_best(MESHCOLL_ALLGATHER, &h->mesh, &h->links, &query, &call.best);
    return status ? status : mc_cache_prepare(h, &call, kind, task, run);
}

/* Where it fails it has freed the check. */
static int start(meshcoll_t *h, mc_check_t *c, uint32_t number)
{
    const mc_gathered_t what = {&c->own, c->all, sizeof c->own, "MESHCOLL_CHECK's", number};
    mc_run_t *x;
    int status = mc_check_gather(h, &what, &gather_kind, c, &x);
    if (status) {
        free(c);
        return status;
    }
    const bool waited = c->waited;
    status = mc_request_start(&x->head);
    if (status && (x->task || waited))
        free(c);
    if (status)
        mc_request_drop(&x->head);
    return status;
}

/* Peers would wait for the fingerprint of a rank that cannot send it. */
static int begin(meshcoll_t *h, mc_run_t *of, const mc_fingerprint_t *f, uint32_t number,
                 mc_check_t **check)
{
    mc_check_t *const c = calloc(1, sizeof *c + (size_t)h->mesh.size * sizeof c->all[0]);
    int status = c ? MESHCOLL_OK : mc_fail_memory("a comparison of calls");
    if (!status) {
        c->of = of;
        c->own = *f;
        c->waited = check != NULL;
        if (check)
            *check = c;
        if (of)
            mc_executor_hold(&of->executor);
        status = start(h, c, number);
    }
    if (status) {
        if (of)
            of->executor.held = false;
        mc_failure_break(h, status);
        return mc_fail(h->job->failure.status, "%s", h->job->failure.why);
    }
    return MESHCOLL_OK;
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

int mc_check_call(meshcoll_t *h, const mc_call_t *call, mc_run_t *r)
{
    const mc_fingerprint_t f = mc_fingerprint_of(h, call);
    mc_differ_t differ;
    if (!r)
        return mc_check_wait(h, &f, call->number.check, &differ);
    return call->number.check ? begin(h, r, &f, call->number.check, NULL) : MESHCOLL_OK;
}

/* Takes part in the comparison, and keeps the text of the error. */
static int compare_refused(meshcoll_t *h, const mc_call_t *call, int status)
{
    char why[SENTENCE];
    mc_text_t text = mc_text(why, sizeof why);
    mc_differ_t differ;
    const mc_fingerprint_t f = mc_fingerprint_refused(h, call->number.own);
    mc_text_add(&text, "%s", meshcoll_last_error());
    if (call->waits)
        (void)mc_check_wait(h, &f, call->number.check, &differ);
    else
        (void)begin(h, NULL, &f, call->number.check, NULL);
    return mc_fail(status, "%s", why);
}

/* Calls of a group were compared before. */
int mc_check_refused(meshcoll_t *h, const mc_call_t *call, int status)
{
    return h->job->failure.status || !call->number.check
               ? mc_lead_refused(h, call->number.own, call->is_persistent, status)
               : compare_refused(h, call, status);
}
