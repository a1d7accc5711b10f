#include "runtime/request.h"

#include "runtime/explain.h"
#include "runtime/greet.h"
#include "runtime/wait.h"

#include <stdlib.h>
#include <string.h>

/* Making and binding ---------------------------------------------------------------------------- */

/* Connections and counters by the plan's peers; both arrays are the caller's to free. */
static int connect_peers(meshcoll_t *h, const mc_plan_t *plan, mc_peer_t **peer, uint64_t **counter)
{
    for (uint32_t i = 0; i < plan->n_peers; i++) {
        const int status = mc_handle_connect(h, plan->peer[i], &peer[i]);
        if (status)
            return status;
        counter[i] = &h->bytes_sent[mc_mesh_level(&h->mesh, h->rank, plan->peer[i])];
    }
    const int status = mc_greet(h, peer, plan->n_peers);
    if (status)
        mc_handle_break(h, status);
    return status;
}

static uint32_t next_operation(meshcoll_t *h)
{
    if ((h->next_operation & MC_TAG_GREETING) == MC_TAG_GREETING)
        h->next_operation++;
    return h->next_operation++;
}

static int init_executor(meshcoll_request_t *r)
{
    meshcoll_t *const h = r->mesh;
    const size_t n = (size_t)r->plan->n_peers + 1;
    mc_peer_t **const peer = calloc(n, sizeof *peer);
    uint64_t **const counter = calloc(n, sizeof *counter);
    int status =
        peer && counter ? connect_peers(h, r->plan, peer, counter) : mc_fail_memory("connections");
    if (!status) {
        const mc_wiring_t wiring = {
            .rank = h->rank, .operation = next_operation(h), .peer = peer, .bytes_sent = counter};
        status = mc_executor_init(&r->executor, r->plan, &wiring);
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
    /* the handle's workspace may have moved since */
    if (same_operands(&r->operands, operands) && r->binding.scratch == r->workspace->base)
        return MESHCOLL_OK;
    r->operands = (mc_operands_t){0};
    int status = mc_binding_measure(&r->binding, operands);
    if (status)
        return status;
    const size_t staging = mc_executor_measure(&r->executor, &r->binding);
    const size_t scratch = aligned(r->binding.scratch_bytes);
    status = mc_workspace_reserve(r->workspace, scratch + staging);
    if (!status)
        status = mc_binding_place(&r->binding, r->workspace->base);
    if (status)
        return status;
    mc_executor_bind(&r->executor, r->workspace->base ? r->workspace->base + scratch : NULL);
    r->operands = *operands;
    return r->watch ? mc_explain_bound(r) : MESHCOLL_OK;
}

static mc_operands_t operands_of(const meshcoll_args_t *a)
{
    const mc_placement_t from = mc_moves[a->collective].from;
    const bool each = a->in_counts; /* of both buffers; else displs are the whole one's */
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

int mc_request_create(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                      mc_workspace_t *workspace, meshcoll_request_t **request)
{
    meshcoll_request_t *const r = calloc(1, sizeof *r);
    if (!r)
        return mc_fail_memory("a request");
    r->mesh = h;
    r->collective = args->collective;
    r->root = args->root;
    r->choice = *choice;
    r->workspace = workspace ? workspace : &r->own;
    int status = print_strategy(r);
    if (!status && args->count > 0) {
        const mc_operands_t operands = operands_of(args);
        status = mc_strategy_plan(&choice->strategy, &h->mesh, h->rank, args->root, &r->plan);
        if (!status)
            status = mc_binding_init(&r->binding, r->plan);
        r->binding.block_of = h->order.comm_rank;
        if (!status)
            status = init_executor(r);
        if (!status && h->explain)
            status = mc_explain_watch(r, args->strategy);
        if (!status)
            status = mc_request_bind(r, &operands);
    }
    if (status) {
        meshcoll_free(r);
        return status;
    }
    *request = r;
    return MESHCOLL_OK;
}

/* A block that passes other ranks needs its size there, and of an alltoall nobody knows all sizes. */
static int choose_direct(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t **choice)
{
    const mc_wish_t wish = {.collective = a->collective,
                            .bytes = a->count * meshcoll_datatype_size(a->datatype),
                            .strategy = a->strategy ? a->strategy : "flat-pairwise"};
    mc_memory_t *c;
    const int status = mc_choose(&h->choice, &h->mesh, &h->links, &wish, &c);
    if (status)
        return status;
    if (c->best.strategy.n_phases != 1 ||
        c->best.strategy.phase[0].algorithm != mc_algorithm_find(MESHCOLL_ALLTOALL, "pairwise", 8))
        return mc_fail(
            MESHCOLL_ERR_STRATEGY,
            "alltoallv goes straight from rank to rank: expected one pairwise phase along "
            "all dimensions, flat-pairwise; got '%s'",
            a->strategy);
    *choice = c;
    return MESHCOLL_OK;
}

static int choose(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t **choice)
{
    if (a->in_counts)
        return choose_direct(h, a, choice);
    const bool has_blocks = mc_move_has_blocks(&mc_moves[a->collective]) && !a->counts;
    if (!mc_op_commutes(a->op) && h->order.comm_rank)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "the operation does not commute, and the ranks do not stand in the mesh in "
                       "their order: start them box by box, or take them as one line: "
                       "MESHCOLL_MESH=rank=%d",
                       h->mesh.size);
    const mc_wish_t wish = {.collective = a->collective,
                            .root = a->root,
                            .bytes = a->count * meshcoll_datatype_size(a->datatype) *
                                     (has_blocks ? (uint64_t)h->mesh.size : 1),
                            .strategy = a->strategy,
                            .in_order = !mc_op_commutes(a->op)};
    return mc_choose(&h->choice, &h->mesh, &h->links, &wish, choice);
}

int meshcoll_init(meshcoll_t *mesh, const meshcoll_args_t *args, meshcoll_request_t **request)
{
    meshcoll_args_t a;
    mc_memory_t *choice;
    if (!mesh || !args || !request)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_init: mesh, args or request is NULL");
    int status = mc_handle_check(mesh);
    if (!status)
        status = mc_args_check(mesh, args, &a);
    if (!status)
        status = choose(mesh, &a, &choice);
    if (!status)
        status = mc_request_create(mesh, &a, &choice->best, NULL, request);
    return status;
}

void meshcoll_free(meshcoll_request_t *request)
{
    if (!request)
        return;
    /* transports may still write to what runs, until it is complete, and to what a failed run left
     * under way, until they are closed */
    if (request->running || (request->mesh && request->executor.state != MC_IDLE)) {
        if (request->running)
            mc_fail(MESHCOLL_ERR_INVALID_ARG,
                    "meshcoll_free: the request is still running; it is released when it is "
                    "complete, and its buffers must stay until then");
        request->released = true;
        return;
    }
    mc_explain_forget(request->watch);
    mc_executor_free(&request->executor);
    mc_workspace_free(&request->own);
    mc_binding_free(&request->binding);
    mc_plan_free(request->plan);
    free(request->text);
    free(request);
}

/* Running --------------------------------------------------------------------------------------- */

void mc_request_ended(meshcoll_request_t *r)
{
    meshcoll_t *const h = r->mesh;
    r->running = false;
    if (r->watch && r->status == MESHCOLL_OK)
        mc_explain_ran(r);
    if (r->status < 0) {
        mc_handle_break(h, r->status);
        r->next = h->failed;
        h->failed = r;
    } else if (r->released) {
        meshcoll_free(r);
    }
}

static int start(meshcoll_request_t *r)
{
    const int broken = mc_handle_check(r->mesh);
    if (broken)
        return broken;
    if (!r->plan)
        return r->status = MESHCOLL_OK;
    r->executor.shared = r->mesh->running;
    r->status = mc_executor_start(&r->executor);
    if (!r->status)
        r->status = mc_executor_advance(&r->executor);
    if (r->status < 0) {
        mc_request_ended(r);
        return r->status;
    }
    if (r->status == MESHCOLL_IN_PROGRESS) {
        r->running = true;
        mc_handle_enlist(r->mesh, r);
    } else if (r->watch) {
        mc_explain_ran(r);
    }
    return MESHCOLL_OK;
}

void mc_request_record(meshcoll_request_t *r, mc_timeline_t *timeline)
{
    r->executor.timeline = timeline || !r->watch ? timeline : &r->watch->timeline;
}

int meshcoll_start(meshcoll_request_t *request)
{
    if (!request)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_start: request is NULL");
    if (request->running)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_start: the request is still running");
    if (!request->mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_start: the request's mesh is destroyed");
    return start(request);
}

int meshcoll_test(meshcoll_request_t *request)
{
    if (!request)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_test: request is NULL");
    if (request->running)
        mc_handle_progress(request->mesh);
    return request->status;
}

static int wait_for(meshcoll_request_t *r)
{
    mc_waiting_t waiting = {0};
    while (r->running)
        mc_wait_turn(r->mesh, &waiting);
    return r->status;
}

int meshcoll_wait(meshcoll_request_t *request)
{
    if (!request)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_wait: request is NULL");
    return wait_for(request);
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

/* Blocking calls -------------------------------------------------------------------------------- */

/* Moves entry i of the cache to the front. */
static void to_front(meshcoll_t *h, int i)
{
    meshcoll_request_t *const r = h->cached[i];
    if (i > 0)
        memmove(&h->cached[1], &h->cached[0], (size_t)i * sizeof h->cached[0]);
    h->cached[0] = r;
}

static bool serves(const meshcoll_request_t *r, const meshcoll_args_t *a, const mc_ranked_t *choice)
{
    return r->collective == a->collective && r->root == a->root &&
           mc_strategy_equal(&r->choice.strategy, &choice->strategy);
}

/* Where the request that serves a call stands, or the first free place, or MC_CACHED_REQUESTS. */
static int find_cached(const meshcoll_t *h, const meshcoll_args_t *a, const mc_memory_t *choice)
{
    int i = 0;
    if (choice->request)
        while (i < MC_CACHED_REQUESTS && h->cached[i] != choice->request)
            i++;
    else
        while (i < MC_CACHED_REQUESTS && h->cached[i] && !serves(h->cached[i], a, &choice->best))
            i++;
    return i;
}

/*
 * Every rank makes and drops the same requests, so that operation numbers agree: which one serves a
 * call follows from collective, root and strategy, and the one that was not used for longest goes first.
 * All of it depends on arguments that are the same on all ranks and on their order, never on addresses
 * or times. Sizes of one strategy share a request. That a choice remembers its request only saves
 * looking for it.
 */
static int from_cache(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t *choice,
                      meshcoll_request_t **request)
{
    const int i = find_cached(h, a, choice);
    if (i < MC_CACHED_REQUESTS && h->cached[i]) {
        const mc_operands_t operands = operands_of(a);
        to_front(h, i);
        *request = choice->request = h->cached[0];
        return mc_request_bind(*request, &operands);
    }
    meshcoll_request_t *fresh;
    const int status = mc_request_create(h, a, &choice->best, &h->workspace, &fresh);
    if (status)
        return status;
    const int last = i < MC_CACHED_REQUESTS ? i : MC_CACHED_REQUESTS - 1;
    if (h->cached[last])
        mc_choice_forget_request(&h->choice, h->cached[last]);
    meshcoll_free(h->cached[last]);
    h->cached[last] = fresh;
    to_front(h, last);
    *request = choice->request = fresh;
    return MESHCOLL_OK;
}

int mc_run(meshcoll_t *h, const meshcoll_args_t *given)
{
    meshcoll_args_t a;
    mc_memory_t *choice;
    meshcoll_request_t *r = NULL;
    if (!h)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "the mesh is NULL");
    int status = mc_handle_check(h);
    if (!status)
        status = mc_args_check(h, given, &a);
    if (status || a.count == 0)
        return status;
    status = choose(h, &a, &choice);
    if (!status)
        status = from_cache(h, &a, choice, &r);
    if (!status)
        status = start(r);
    return status ? status : wait_for(r);
}

int mc_run_barrier(meshcoll_t *h)
{
    if (!h)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "the mesh is NULL");
    const meshcoll_args_t args = {.collective = MESHCOLL_ALLREDUCE,
                                  .in = &h->arrived,
                                  .out = &h->arrived,
                                  .count = 1,
                                  .datatype = MESHCOLL_INT32};
    const mc_wish_t wish = {
        .collective = MESHCOLL_ALLREDUCE, .bytes = sizeof h->arrived, .unforced = true};
    int status = mc_handle_check(h);
    if (!status && !h->barrier) {
        mc_memory_t *choice;
        status = mc_choose(&h->choice, &h->mesh, &h->links, &wish, &choice);
        if (!status)
            status = mc_request_create(h, &args, &choice->best, NULL, &h->barrier);
    }
    if (!status)
        status = start(h->barrier);
    return status ? status : wait_for(h->barrier);
}
