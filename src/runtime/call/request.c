#include "runtime/call/request.h"

#include "runtime/call/args.h"
#include "runtime/connect/connections.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>
#include <string.h>

/* Making and binding ---------------------------------------------------------------------------- */

/* Fills in connections and byte counters by the plan's peers; both arrays are the caller's. */
static int connect_peers(const meshcoll_request_t *r, mc_peer_t **peer, uint64_t **counter)
{
    meshcoll_t *const h = r->mesh;
    const mc_plan_t *const plan = r->plan;
    for (uint32_t i = 0; i < plan->n_peers; i++) {
        const int32_t rank = mc_request_rank_of(r, plan->peer[i]);
        const int status = mc_handle_connect(h, rank, &peer[i]);
        if (status)
            return status;
        counter[i] = &h->bytes_sent[mc_mesh_level(&h->mesh, h->rank, rank)];
    }
    return MESHCOLL_OK;
}

static int init_executor(meshcoll_request_t *r)
{
    const size_t n = (size_t)r->plan->n_peers + 1;
    mc_peer_t **const peer = calloc(n, sizeof *peer);
    uint64_t **const counter = calloc(n, sizeof *counter);
    int status = peer && counter ? connect_peers(r, peer, counter) : mc_fail_memory("connections");
    if (!status) {
        const mc_wiring_t wiring = {.rank = mc_job_rank(r->mesh, r->mesh->rank),
                                    .context = r->mesh->context,
                                    .pacing = mc_handle_pacing(r->mesh),
                                    .oversubscribed = r->mesh->job->oversubscribed,
                                    .peer = peer,
                                    .bytes_sent = counter};
        status = mc_executor_init(&r->executor, r->plan, &wiring);
        r->executor.finished.owner = r->executor.credits.owner = &r->ready;
    }
    free(counter);
    free(peer);
    return status;
}

static int print_strategy(meshcoll_request_t *r)
{
    char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_strategy_print(&r->choice.strategy, &r->mesh->mesh, &text);
    r->text = strdup(buffer);
    return r->text ? MESHCOLL_OK : mc_fail_memory("a strategy's text");
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

int mc_request_bind(meshcoll_request_t *r, const mc_operands_t *operands)
{
    if (same_operands(&r->operands, operands) && mc_request_stays(r))
        return MESHCOLL_OK;
    mc_request_unbind(r);
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
    return r->watch ? r->mesh->hooks.bound(r) : MESHCOLL_OK;
}

int mc_request_move(meshcoll_request_t *r, const void *in, void *out)
{
    mc_operands_t operands = r->operands;
    operands.in = in;
    operands.out = out;
    if (r->needs > 0 && r->needs > r->workspace->bytes)
        return mc_request_bind(r, &operands);
    mc_binding_move(&r->binding, in, out, r->needs > 0 ? r->workspace->base : r->binding.scratch);
    if (r->needs > 0)
        r->executor.staging = r->workspace->base + aligned(r->binding.scratch_bytes);
    r->operands = operands;
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

void mc_request_enlist(meshcoll_t *h, meshcoll_request_t *r)
{
    r->mesh = h;
    r->ready.list = &h->job->requests.ready;
    r->next_of_all = h->all;
    if (h->all)
        h->all->prev_of_all = r;
    h->all = r;
}

void mc_request_unlist(meshcoll_request_t *r)
{
    if (r->prev_of_all)
        r->prev_of_all->next_of_all = r->next_of_all;
    else
        r->mesh->all = r->next_of_all;
    if (r->next_of_all)
        r->next_of_all->prev_of_all = r->prev_of_all;
    r->next_of_all = r->prev_of_all = NULL;
}

static int make_plan(meshcoll_request_t *r)
{
    const meshcoll_t *const h = r->mesh;
    const int32_t rank = r->by_comm ? mc_comm_rank_of(&h->order, h->rank) : h->rank;
    const int32_t root = r->by_comm ? mc_comm_rank_of(&h->order, r->root) : r->root;
    int status = mc_strategy_plan(&r->choice.strategy, &h->mesh, rank, root, &r->plan);
    if (!status)
        status = mc_binding_init(&r->binding, r->plan);
    r->binding.block_of = r->by_comm ? NULL : h->order.comm_rank;
    return status;
}

static const mc_request_kind_t plan_kind = {.release = mc_request_destroy};

int mc_request_unplanned(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                         meshcoll_request_t **request)
{
    meshcoll_request_t *const r = calloc(1, sizeof *r);
    if (!r)
        return mc_fail_memory("a request");
    mc_request_enlist(h, r);
    mc_request_unbind(r);
    r->collective = args->collective;
    r->root = args->root;
    r->choice = *choice;
    r->by_comm = mc_plans_by_comm(h, args);
    r->kind = &plan_kind;
    const int status = print_strategy(r);
    if (status)
        mc_request_destroy(r);
    else
        *request = r;
    return status;
}

static void drop_plan(meshcoll_request_t *r)
{
    mc_executor_free(&r->executor);
    mc_binding_free(&r->binding);
    mc_plan_free(r->plan);
    r->plan = NULL;
}

int mc_request_plan(meshcoll_request_t *r, const meshcoll_args_t *args)
{
    int status = make_plan(r);
    if (!status)
        status = init_executor(r);
    if (!status && r->mesh->hooks.made)
        status = r->mesh->hooks.made(r, args);
    if (status)
        drop_plan(r);
    return status;
}

int mc_request_create(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                      meshcoll_request_t **request)
{
    meshcoll_request_t *r = NULL;
    int status = mc_request_unplanned(h, args, choice, &r);
    if (status)
        return status;
    if (args->count > 0)
        status = mc_request_plan(r, args);
    if (status)
        mc_request_destroy(r);
    else
        *request = r;
    return status;
}

/* Frees the workspace of a request whose handle may be gone. */
static void free_memory(mc_workspace_t *workspace)
{
    if (!workspace)
        return;
    mc_workspace_free(workspace);
    free(workspace);
}

void mc_request_destroy(meshcoll_request_t *r)
{
    mc_list_remove(&r->ready.node);
    if (r->watch && r->mesh)
        r->mesh->hooks.freed(r);
    if (r->mesh)
        mc_request_unlist(r);
    drop_plan(r);
    if (r->workspace != &r->own)
        free_memory(r->workspace);
    free_memory(r->staging);
    mc_workspace_free(&r->own);
    if (r->own_lead && r->own_lead->refused.n > 0 && r->mesh)
        r->mesh->keeps_context = true;
    if (r->own_lead && r->own_lead->n_barriers > 0)
        r->own_lead->dropped = true; /* the last of them frees it */
    else
        mc_lead_free(r->own_lead);
    free(r->barrier);
    free(r->mismatch);
    free(r->text);
    free(r);
}

void mc_request_drop(meshcoll_request_t *r)
{
    /* transports may still write to a running request until it is complete, and to what a failed
     * run left in flight until they are closed */
    const mc_run_state_t state = r->executor.state;
    const bool idle = state == MC_IDLE || (state == MC_NEW && !r->exchange && !r->check) ||
                      (state == MC_FAILED && r->why && !r->exchange);
    if (r->running || (r->mesh && !idle))
        r->released = true;
    else
        r->kind->release(r);
}

/* A request that serves calls is its caller's only until the call is complete. */
static int check_owned(const meshcoll_request_t *r, const char *function)
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
    if (!check_owned(request, "meshcoll_free"))
        mc_request_drop(request);
    (void)mc_leave(h, MESHCOLL_OK);
}

/* Running --------------------------------------------------------------------------------------- */

/* Nothing to do, but its comparison with the calls of other ranks may still run. */
static int start_unplanned(meshcoll_request_t *r)
{
    r->status = MESHCOLL_OK;
    if (!r->check) {
        r->active = !r->why;
        return r->why ? mc_fail(r->status_of_check, "%s", r->why) : MESHCOLL_OK;
    }
    r->executor.state = MC_PENDING;
    r->status = MESHCOLL_IN_PROGRESS;
    r->running = true;
    mc_busy_enlist(r->mesh->job, r);
    return MESHCOLL_OK;
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
    if (!r->plan)
        return start_unplanned(r);
    r->status = r->kind->start ? r->kind->start(r) : MESHCOLL_OK;
    r->executor.shared = job->requests.running.first;
    if (!r->status)
        r->status = mc_executor_start(&r->executor, r->operation);
    if (!r->status)
        r->status = mc_executor_advance(&r->executor);
    mc_job_wake_peers(job);
    if (r->status < 0)
        return fail_start(r);
    if (r->status == MESHCOLL_IN_PROGRESS) {
        r->running = true;
        mc_busy_enlist(r->mesh->job, r);
        return MESHCOLL_OK;
    }
    if (r->watch)
        r->mesh->hooks.ran(r);
    if (r->kind->end)
        r->status = r->kind->end(r);
    return r->status < 0 ? fail_start(r) : MESHCOLL_OK;
}

void mc_request_record(meshcoll_request_t *r, mc_timeline_t *timeline)
{
    r->executor.timeline = timeline ? timeline : r->watch;
}

static int check_callback(const meshcoll_request_t *r)
{
    if (!r)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_set_callback: the request is NULL; a call of a group has none");
    if (!r->mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_set_callback: the request's mesh is destroyed");
    return MESHCOLL_OK;
}

int meshcoll_set_callback(meshcoll_request_t *request, meshcoll_callback_t callback, void *context)
{
    int status = check_callback(request);
    if (status)
        return status;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    status = check_owned(request, "meshcoll_set_callback");
    if (!status) {
        request->callback = callback;
        request->callback_context = context;
        if (callback && !request->running && !request->persistent)
            mc_callback_due(request);
    }
    return mc_leave(h, status);
}

static inline int tell(meshcoll_request_t *r)
{
    const int status = r->status;
    /* it may have failed in another thread, or long ago: restore its error text */
    if (status < 0 && r->why)
        mc_fail(status, "%s", r->why);
    else if (status < 0 && r->mesh && r->mesh->job->failure.status)
        mc_fail(status, "%s", r->mesh->job->failure.why);
    r->active = false;
    if (!r->persistent)
        mc_request_drop(r);
    return status;
}

int mc_request_tell(meshcoll_request_t *r)
{
    return tell(r);
}

int meshcoll_test(meshcoll_request_t *request)
{
    if (!request)
        return MESHCOLL_OK;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    int status = check_owned(request, "meshcoll_test");
    if (mc_runs(request))
        mc_test_turn(request->mesh);
    if (!status)
        status = request->running ? MESHCOLL_IN_PROGRESS : tell(request);
    return mc_leave(h, status);
}

int mc_request_await(meshcoll_request_t *r)
{
    mc_waiting_t waiting = {0};
    while (r->running)
        mc_wait_turn(r->mesh, &waiting);
    return r->status;
}

int meshcoll_wait(meshcoll_request_t *request)
{
    if (!request)
        return MESHCOLL_OK;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    int status = check_owned(request, "meshcoll_wait");
    if (!status && mc_runs(request) && request->mesh->n_restricted > 0)
        status = mc_callback_check("meshcoll_wait");
    if (!status) {
        mc_request_await(request);
        status = tell(request);
    }
    return mc_leave(h, status);
}

const char *meshcoll_request_strategy(const meshcoll_request_t *request)
{
    if (!request)
        mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_request_strategy: request is NULL");
    return request ? request->text : NULL;
}

double meshcoll_request_predicted(const meshcoll_request_t *request)
{
    if (!request)
        mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_request_predicted: request is NULL");
    return request ? request->choice.seconds : 0;
}
