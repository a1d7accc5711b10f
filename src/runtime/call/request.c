#include "runtime/call/request.h"

#include "compose/planner/planner.h"
#include "runtime/call/args.h"
#include "runtime/connect/connections.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/flush.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>
#include <string.h>

/* Workspaces ------------------------------------------------------------------------------------ */

mc_workspace_t *mc_fresh_memory(void)
{
    mc_workspace_t *const fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        mc_fail_memory("scratch");
    return fresh;
}

void mc_free_memory(meshcoll_t *h)
{
    while (h->memory.first) {
        mc_workspace_t *const w = h->memory.first;
        h->memory.first = w->next;
        mc_workspace_free(w);
        free(w);
    }
}

/* Making and binding ------------------------------------------------------------------------------ */

/* Fills in connections and byte counters by the plan's peers; both arrays are the caller's. */
static int connect_peers(const mc_run_t *r, mc_peer_t **peer, uint64_t **counter)
{
    meshcoll_t *const h = r->head.mesh;
    const mc_plan_t *const plan = r->plan;
    for (uint32_t i = 0; i < plan->n_peers; i++) {
        const int32_t rank = mc_run_rank_of(r, plan->peer[i]);
        const int status = mc_handle_connect(h, rank, &peer[i]);
        if (status)
            return status;
        counter[i] = &h->bytes_sent[mc_mesh_level(&h->mesh, h->rank, rank)];
    }
    return MESHCOLL_OK;
}

static int init_executor(mc_run_t *r)
{
    const size_t n = (size_t)r->plan->n_peers + 1;
    mc_peer_t **const peer = calloc(n, sizeof *peer);
    uint64_t **const counter = calloc(n, sizeof *counter);
    int status = peer && counter ? connect_peers(r, peer, counter) : mc_fail_memory("connections");
    if (!status) {
        const mc_wiring_t wiring = {.rank = mc_job_rank(r->head.mesh, r->head.mesh->rank),
                                    .context = r->head.mesh->context.number,
                                    .pacing = mc_handle_pacing(r->head.mesh),
                                    .oversubscribed = r->head.mesh->job->oversubscribed,
                                    .peer = peer,
                                    .bytes_sent = counter};
        status = mc_executor_init(&r->executor, r->plan, &wiring);
        r->executor.finished.owner = r->executor.credits.owner = &r->head.ready;
    }
    free(counter);
    free(peer);
    return status;
}

int mc_run_choose(mc_run_t *r, const mc_ranked_t *choice)
{
    char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_strategy_print(&choice->strategy, &r->head.mesh->mesh, &text);
    char *const copy = strdup(buffer);
    if (!copy)
        return mc_fail_memory("a strategy's text");
    r->choice = *choice;
    r->text = copy;
    return MESHCOLL_OK;
}

static bool same_operands(const mc_operands_t *a, const mc_operands_t *b)
{
    return a->in == b->in && a->out == b->out && a->count == b->count &&
           a->datatype == b->datatype && a->op == b->op && !a->out_counts && !b->out_counts;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int bind_operands(mc_run_t *r, const mc_operands_t *operands)
{
    if (same_operands(&r->operands, operands) && mc_run_stays(r))
        return MESHCOLL_OK;
    mc_run_unbind(r);
    int status = mc_binding_measure(&r->binding, operands);
    if (status)
        return status;
    const size_t staging = mc_executor_measure(&r->executor, &r->binding);
    const size_t scratch = aligned(r->binding.scratch_bytes);
    r->needs = scratch + staging;
    status = mc_workspace_reserve(r->workspace, r->needs);
    if (!status)
        status = mc_binding_place(&r->binding, r->workspace->base);
    if (status)
        return status;
    mc_executor_bind(&r->executor, r->workspace->base ? r->workspace->base + scratch : NULL);
    r->operands = *operands;
    return MESHCOLL_OK;
}

mc_operands_t mc_operands_of(const meshcoll_args_t *a)
{
    const mc_placement_t from = mc_moves[a->collective].from;
    const bool each =
        a->in_counts; /* a table per buffer; else displs are those of the whole vector's */
    return (mc_operands_t){.in = a->in,
                           .out = a->out,
                           .count = a->count,
                           .datatype = a->datatype,
                           .op = a->op,
                           .in_counts = each ? a->in_counts : a->counts,
                           .in_displs = each               ? a->in_displs
                                        : from == MC_SHARD ? NULL
                                                           : a->displs,
                           .out_counts = a->counts,
                           .out_displs = each || from == MC_SHARD ? a->displs : NULL};
}

int mc_run_bind(mc_run_t *r, const meshcoll_args_t *args, const mc_forwarded_t *forwarded)
{
    meshcoll_t *const h = r->head.mesh;
    mc_operands_t operands = mc_operands_of(args);
    operands.forwarded = forwarded;
    if (!r->plan)
        return MESHCOLL_OK;
    int status = mc_args_own_counts(h, args, &operands);
    if (!status && !r->workspace && !(r->workspace = mc_take_memory(h)))
        status = MESHCOLL_ERR_NO_MEMORY;
    if (status)
        return status;
    status = bind_operands(r, &operands);
    if (!status && r->watch)
        status = h->hooks->bound(r, args);
    if (!status && r->head.persistent)
        mc_huge_pages(&r->executor);
    return status;
}

int mc_run_move(mc_run_t *r, const void *in, void *out)
{
    mc_operands_t operands = r->operands;
    operands.in = in;
    operands.out = out;
    if (r->needs > 0 && r->needs > r->workspace->bytes)
        return bind_operands(r, &operands);
    mc_binding_move(&r->binding, in, out, r->needs > 0 ? r->workspace->base : r->binding.scratch);
    if (r->needs > 0)
        r->executor.staging = r->workspace->base + aligned(r->binding.scratch_bytes);
    r->operands = operands;
    return MESHCOLL_OK;
}

static int make_plan(mc_run_t *r)
{
    const meshcoll_t *const h = r->head.mesh;
    const int32_t rank = r->by_comm ? mc_comm_rank_of(&h->order, h->rank) : h->rank;
    const int32_t root = r->by_comm ? mc_comm_rank_of(&h->order, r->root) : r->root;
    int status = mc_strategy_plan(&r->choice.strategy, &h->mesh, rank, root, &r->plan);
    if (!status)
        status = mc_binding_init(&r->binding, r->plan);
    r->binding.block_of = r->by_comm ? NULL : h->order.comm_rank;
    return status;
}

int mc_run_make(meshcoll_t *h, const mc_request_kind_t *kind, const mc_call_t *call, mc_run_t **run)
{
    mc_run_t *const r = calloc(1, kind->bytes);
    if (!r)
        return mc_fail_memory("a request");
    r->head.kind = kind;
    mc_request_enlist(h, &r->head);
    mc_run_unbind(r);
    r->head.number = call->number.own;
    r->root = call->args.root;
    r->by_comm = call->by_comm;
    const int status = mc_run_choose(r, &call->best);
    if (status)
        mc_run_destroy(&r->head);
    else
        *run = r;
    return status;
}

static void drop_plan(mc_run_t *r)
{
    mc_executor_free(&r->executor);
    mc_binding_free(&r->binding);
    mc_plan_free(r->plan);
    r->plan = NULL;
}

static void unwatch(mc_run_t *r)
{
    if (r->watch && r->head.mesh)
        r->head.mesh->hooks->freed(r);
}

void mc_run_unplan(mc_run_t *r)
{
    const uint32_t digest = r->executor.digest;
    unwatch(r);
    drop_plan(r);
    mc_run_unbind(r);
    r->executor.digest = digest;
}

int mc_run_plan(mc_run_t *r, const mc_call_t *call)
{
    meshcoll_t *const h = r->head.mesh;
    h->calls.making = call->is_own ? NULL : call;
    int status = make_plan(r);
    if (!status)
        status = init_executor(r);
    h->calls.making = NULL;
    if (!status && h->hooks->made && !r->head.kind->is_internal)
        status = h->hooks->made(r);
    if (status)
        drop_plan(r);
    return status;
}

/* Frees the workspace of a run whose handle may be gone. */
static void free_memory(mc_workspace_t *workspace)
{
    if (!workspace)
        return;
    mc_workspace_free(workspace);
    free(workspace);
}

void mc_run_destroy(meshcoll_request_t *request)
{
    mc_run_t *const r = mc_run_of(request);
    mc_list_remove(&request->ready.node);
    mc_list_remove(&request->of_mesh);
    unwatch(r);
    drop_plan(r);
    if (r->workspace != &r->own)
        free_memory(r->workspace);
    free_memory(r->staging);
    mc_workspace_free(&r->own);
    free(r->mismatch);
    free(r->text);
    free(r);
}

/* Running --------------------------------------------------------------------------------------- */

/* Without a plan there is nothing to do, but its comparison with the calls of other ranks may still run. */
static int begin_unplanned(mc_executor_t *x)
{
    if (!x->held)
        return x->status;
    x->state = MC_PENDING;
    return MESHCOLL_IN_PROGRESS;
}

/* Of a run that flushes or is watched. Once its messages are complete it flushes its transports, and ends. */
static int go_on(mc_run_t *r, int status, bool flushed, uint32_t events)
{
    mc_executor_t *const x = &r->executor;
    if (x->state == MC_FLUSHING) {
        status = flushed ? mc_flush_check(&r->head, &r->flush, events)
                         : mc_flush_begin(&r->head, x->flushes, &r->flush);
        if (status == MESHCOLL_OK)
            mc_executor_end(x);
    }
    if (status == MESHCOLL_OK && r->watch)
        r->head.mesh->hooks->ran(r);
    return status;
}

/* Functions of their own, so that any other run saves no registers. */
__attribute__((noinline)) static int begin_watched(mc_run_t *r)
{
    return go_on(r, mc_executor_start(&r->executor, r->head.number), false, 0);
}

__attribute__((noinline)) static int advance_watched(mc_run_t *r, uint32_t events)
{
    const bool flushed = r->executor.state == MC_FLUSHING;
    return go_on(r, mc_executor_advance(&r->executor), flushed, events);
}

int mc_run_begin(meshcoll_request_t *request)
{
    mc_run_t *const r = (mc_run_t *)request;
    if (!r->plan)
        return begin_unplanned(&r->executor);
    return r->executor.flushes || r->watch ? begin_watched(r)
                                           : mc_executor_start(&r->executor, request->number);
}

int mc_run_advance(meshcoll_request_t *request, uint32_t events)
{
    mc_run_t *const r = (mc_run_t *)request;
    return r->executor.flushes || r->watch ? advance_watched(r, events)
                                           : mc_executor_advance(&r->executor);
}

void mc_run_cancel(meshcoll_request_t *request, int status)
{
    mc_executor_t *const x = &((mc_run_t *)request)->executor;
    mc_executor_fail(x, status);
    request->status = mc_executor_advance(x);
}

void mc_run_record(meshcoll_request_t *request, mc_timeline_t *timeline)
{
    mc_run_t *const r = mc_run_of(request);
    r->executor.timeline = timeline ? timeline : r->watch;
}

/* Agreements ------------------------------------------------------------------------------------- */

static int make_maxima(meshcoll_t *h, const mc_request_kind_t *kind, mc_maxima_t **maxima)
{
    const mc_pacing_t pacing = mc_handle_pacing(h);
    const mc_planner_query_t query = {
        .bytes = sizeof(*maxima)->words, .max_segments = 1, .pacing = &pacing};
    mc_call_t call = {.args = {.collective = MESHCOLL_ALLREDUCE,
                               .count = MC_MAXIMA,
                               .datatype = MESHCOLL_INT64,
                               .op = MESHCOLL_MAX},
                      .is_own = true};
    mc_run_t *r = NULL;
    int status = mc_planner_best(MESHCOLL_ALLREDUCE, &h->mesh, &h->links, &query, &call.best);
    if (!status)
        status = mc_run_make(h, kind, &call, &r);
    if (status)
        return status;
    call.args.in = call.args.out = ((mc_maxima_t *)r)->words;
    r->workspace = &r->own;
    status = mc_run_plan(r, &call);
    if (!status)
        status = mc_run_bind(r, &call.args, NULL);
    if (status)
        mc_run_destroy(&r->head);
    else
        *maxima = (mc_maxima_t *)r;
    return status;
}

int mc_maxima_take(meshcoll_t *h, const mc_request_kind_t *kind, mc_maxima_t **maxima)
{
    mc_list_node_t *const n = h->leads.spare.first;
    if (!n)
        return make_maxima(h, kind, maxima);
    mc_list_remove(n);
    *maxima = (mc_maxima_t *)((char *)n - offsetof(mc_maxima_t, spare));
    (*maxima)->run.head.kind = kind;
    return MESHCOLL_OK;
}

int mc_maxima_start(mc_maxima_t *x, uint32_t number, const uint32_t *reached, uint32_t awaited,
                    mc_list_t *reaching)
{
    meshcoll_request_t *const r = &x->run.head;
    r->number = number;
    r->released = true; /* nobody waits for it */
    r->mesh->leads.n_barriers++;
    mc_executor_await(&x->run.executor, reached, awaited, reaching);
    return mc_request_start(r);
}

/* It returns to the mesh. */
void mc_maxima_release(meshcoll_request_t *r)
{
    if (r->mesh)
        mc_list_append(&r->mesh->leads.spare, &((mc_maxima_t *)r)->spare);
    else
        mc_run_destroy(r);
}

/* Requests of any kind ---------------------------------------------------------------------------- */

void mc_request_enlist(meshcoll_t *h, meshcoll_request_t *r)
{
    r->mesh = h;
    r->ready.list = &h->job->requests.ready;
    mc_list_append(&h->requests, &r->of_mesh);
}

/* May transports not write to what it uses, any more? What a failed run left in flight they may, until they are
 * closed. */
static bool is_idle(const meshcoll_request_t *r)
{
    const mc_run_t *const run = mc_run_of(r);
    if (!run)
        return r->status >= 0 || r->why;
    const mc_run_state_t state = run->executor.state;
    return state == MC_IDLE || (state == MC_NEW && !run->exchange && !run->executor.held) ||
           (state == MC_FAILED && r->why && !run->exchange);
}

void mc_request_drop(meshcoll_request_t *r)
{
    if (r->running || (r->mesh && !is_idle(r)))
        r->released = true;
    else
        r->kind->release(r);
}

int mc_request_check(const meshcoll_request_t *r, const char *function)
{
    if (!r)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "%s: the request is NULL; a call of a group has none", function);
    return r->mesh
               ? MESHCOLL_OK
               : mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: the request's mesh is destroyed", function);
}

int mc_request_check_owned(const meshcoll_request_t *r, const char *function)
{
    if (r->persistent || r->taken)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "%s: this call is complete, and its request no longer the caller's", function);
}

void meshcoll_free(meshcoll_request_t *request)
{
    if (!request || (request->mesh && request->mesh->job->unusable))
        return;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    if (mc_runs(request))
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_free: the request is still running; it is released when it is "
                "complete, and its buffers must stay valid until then");
    if (!mc_request_check_owned(request, "meshcoll_free"))
        mc_request_drop(request);
    (void)mc_leave(h, MESHCOLL_OK);
}

/* The run could not start, or has failed at once. */
static int fail_start(meshcoll_request_t *r)
{
    if (r->why) {
        r->active = false;
        return mc_fail(r->status, "%s", r->why);
    }
    mc_failure_break(r->mesh, r->status);
    return r->status = r->mesh->job->failure.status;
}

int mc_request_start(meshcoll_request_t *r)
{
    mc_job_t *const job = r->mesh->job;
    const int broken = mc_failure_check(r->mesh);
    if (broken)
        return broken;
    r->active = true;
    if (job->threads)
        mc_threads_wake(job->threads);
    r->status = r->kind->start(r);
    mc_job_wake_peers(job);
    if (r->status == MESHCOLL_IN_PROGRESS) {
        r->running = true;
        mc_busy_enlist(job, r);
        return MESHCOLL_OK;
    }
    if (r->status == MESHCOLL_OK && r->kind->finish)
        r->status = r->kind->finish(r);
    if (r->status < 0)
        return fail_start(r);
    if (r->released)
        r->kind->release(r);
    return MESHCOLL_OK;
}

int meshcoll_set_callback(meshcoll_request_t *request, meshcoll_callback_t callback, void *context)
{
    int status = mc_request_check(request, "meshcoll_set_callback");
    if (status)
        return status;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    status = mc_request_check_owned(request, "meshcoll_set_callback");
    if (!status) {
        request->callback.function = callback;
        request->callback.context = context;
        if (callback && !request->running && !request->persistent)
            mc_callback_due(request);
    }
    return mc_leave(h, status);
}

/* Its text: it may have failed in another thread, or long ago. */
__attribute__((noinline)) static void restore_error(const meshcoll_request_t *r, int status)
{
    if (r->why)
        mc_fail(status, "%s", r->why);
    else if (r->mesh && r->mesh->job->failure.status)
        mc_fail(status, "%s", r->mesh->job->failure.why);
}

int mc_request_await(meshcoll_request_t *r)
{
    mc_waiting_t waiting = {0};
    while (r->running)
        mc_wait_turn(r->mesh, &waiting);
    if (r->status < 0)
        restore_error(r, r->status);
    return r->status;
}

static inline __attribute__((always_inline)) int complete(meshcoll_request_t *r)
{
    const int status = r->status;
    r->active = false;
    if (status < 0)
        restore_error(r, status);
    if (r->persistent)
        return status;
    if (status == MESHCOLL_OK) /* nothing is in flight */
        r->kind->release(r);
    else
        mc_request_drop(r);
    return status;
}

int mc_request_complete(meshcoll_request_t *r)
{
    if (r->running)
        (void)mc_request_await(r);
    return complete(r);
}

int meshcoll_test(meshcoll_request_t *request)
{
    if (!request)
        return MESHCOLL_OK;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    int status = mc_request_check_owned(request, "meshcoll_test");
    if (mc_runs(request))
        mc_test_turn(request->mesh);
    if (!status)
        status = request->running ? MESHCOLL_IN_PROGRESS : complete(request);
    return mc_leave(h, status);
}

int meshcoll_wait(meshcoll_request_t *request)
{
    if (!request)
        return MESHCOLL_OK;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    int status = mc_request_check_owned(request, "meshcoll_wait");
    if (!status && mc_runs(request) && request->mesh->n_restricted > 0)
        status = mc_callback_check("meshcoll_wait");
    if (!status && request->running && request->kind->awaited)
        request->kind->awaited(request);
    if (!status)
        status = mc_request_complete(request);
    return mc_leave(h, status);
}

const char *meshcoll_request_strategy(const meshcoll_request_t *request)
{
    if (!request)
        mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_request_strategy: request is NULL");
    return request && mc_run_of(request) ? mc_run_of(request)->text : NULL;
}

double meshcoll_request_predicted(const meshcoll_request_t *request)
{
    if (!request)
        mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_request_predicted: request is NULL");
    return request && mc_run_of(request) ? mc_run_of(request)->choice.seconds : 0;
}
