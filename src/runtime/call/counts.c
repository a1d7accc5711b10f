/*
 * The sizes of the blocks that pass through a rank in an alltoallv of several phases, which are
 * unknown there. The counts are sent first, by the same strategy, as an alltoall of one element per
 * block: the chunk of SCRATCH in which a block will be then holds its count.
 */
#include "runtime/call/call.h"

#include "runtime/call/args.h"
#include "runtime/call/request.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(size_t) == 8, "counts travel as MESHCOLL_UINT64");

typedef struct mc_exchange {
    /* Is bound to `args` by what arrives; NULL: a caller waits for `forwarded`, and closes this. */
    mc_run_t *of;
    bool has_ended;
    int status;
    mc_forwarded_t *forwarded;
    mc_run_t *run;
    mc_workspace_t *counts; /* of the caller's blocks, then of those it receives */
    meshcoll_args_t args;   /* its tables are copies */
    size_t table[];
} mc_exchange_t;

/* In a single exchange the sender and receiver of a block know its size. */
static bool goes_straight(const mc_strategy_t *s)
{
    return s->n_phases == 0 ||
           (s->n_phases == 1 &&
            s->phase[0].algorithm == mc_algorithm_find(MESHCOLL_ALLTOALL, "pairwise", 8));
}

/* Is each chunk of SCRATCH written at most once? It has room for the blocks of two exchanges; later
 * ones overwrite it. */
static int check_once(const mc_plan_t *plan)
{
    uint64_t written = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const s = &plan->step[i];
        if (mc_op_writes((mc_op_t)s->op) && s->dst == MC_SCRATCH)
            written += (uint64_t)s->run * s->nrun;
    }
    if (written <= plan->n_scratch)
        return MESHCOLL_OK;
    return mc_fail(
        MESHCOLL_ERR_STRATEGY,
        "alltoallv: a block passes at most two other ranks on its way, so expected a strategy "
        "of at most three exchanges (alltoall:digits has one for each prime factor, alltoall:bruck "
        "two and more), as "
        "\"hierarchical\" has on this mesh, or \"flat-pairwise\"");
}

/* Compares the received counts with the caller's. */
static int check_expected(const meshcoll_t *h, const meshcoll_args_t *a, const size_t *sent)
{
    for (int32_t r = 0; r < h->mesh.size; r++)
        if (sent[r] != a->counts[r])
            return mc_fail(
                MESHCOLL_ERR_INVALID_ARG,
                "alltoallv: rank %d sends %zu elements, but out_counts[%d] on this rank is "
                "%zu",
                r, sent[r], r, a->counts[r]);
    return MESHCOLL_OK;
}

/* The exchange ------------------------------------------------------------------------------------ */

static void close(meshcoll_t *h, mc_exchange_t *e)
{
    if (e->counts && h) {
        mc_return_memory(h, e->counts);
    } else if (e->counts) {
        mc_workspace_free(e->counts);
        free(e->counts);
    }
    free(e);
}

/* Zeroes SCRATCH: where there is no block there must be no count, and a rank's own block may never
 * be in SCRATCH. */
static void clear(const mc_binding_t *binding)
{
    if (binding->scratch_bytes > 0)
        memset(binding->scratch, 0, binding->scratch_bytes);
}

/* Copies what the exchange left in SCRATCH. */
static int copy_forwarded(const mc_forwarded_t *table, const mc_binding_t *b,
                          mc_forwarded_t **forwarded)
{
    const size_t ends = table->before ? table->n + 1 : 0;
    mc_forwarded_t *const p = malloc(sizeof *p + b->scratch_bytes + ends * sizeof *table->before);
    if (!p)
        return mc_fail_memory("an exchange of counts");
    size_t *const count = (size_t *)(void *)(p + 1);
    size_t *const before = count + b->scratch_bytes / sizeof *count;
    if (b->scratch_bytes > 0)
        memcpy(count, b->scratch, b->scratch_bytes);
    if (ends > 0)
        memcpy(before, table->before, ends * sizeof *before);
    *p = (mc_forwarded_t){count, ends > 0 ? before : NULL, table->first, table->n};
    *forwarded = p;
    return MESHCOLL_OK;
}

/* Binds the request that waits for the counts, or keeps them. */
static int take(mc_exchange_t *e)
{
    const mc_run_t *const x = e->run;
    const mc_forwarded_t table = {.count = (const size_t *)(const void *)x->binding.scratch,
                                  .before = x->binding.blocks[MC_SCRATCH].before,
                                  .first = x->plan->scratch_first,
                                  .n = x->plan->n_scratch};
    const int status =
        check_expected(x->head.mesh, &e->args, (const size_t *)(const void *)e->counts->base);
    if (status)
        return status;
    return e->of ? mc_run_bind(e->of, &e->args, &table)
                 : copy_forwarded(&table, &x->binding, &e->forwarded);
}

/* The counts have arrived, the call was not made, or the mesh has failed or is closed. Where it fails, peers would wait
 * for the blocks: the mesh fails. */
static int finish(meshcoll_request_t *x)
{
    mc_exchange_t *const e = mc_run_of(x)->task;
    mc_run_t *const r = e->of;
    e->status = x->status ? x->status : take(e);
    e->has_ended = true;
    mc_run_of(x)->task = NULL;
    if (!r)
        return e->status;
    const int status = e->status;
    r->exchange = NULL;
    close(x->mesh, e);
    if (x->mesh && r->head.released && !r->head.running)
        mc_request_drop(&r->head);
    return status;
}

static const mc_request_kind_t exchange_kind = {MC_CACHED_RUN, .is_internal = true,
                                                .waits = MC_WAIT_COUNTS, .finish = finish};

/* Finds a request for the exchange, by the strategy of the blocks. */
static int prepare(meshcoll_t *h, const mc_call_t *call, mc_exchange_t *e)
{
    mc_call_t own = {.args = {.collective = MESHCOLL_ALLTOALL,
                              .in = e->counts->base,
                              .out = e->counts->base,
                              .count = 1,
                              .datatype = MESHCOLL_UINT64,
                              .root = call->args.root,
                              .strategy = "the blocks'"}, /* a name for MESHCOLL_EXPLAIN */
                     .number.own = call->number.counts,
                     .best = call->best};
    own.best.strategy.segments = 1;
    int status = mc_cache_prepare(h, &own, &exchange_kind, e, &e->run);
    if (status)
        return status;
    status = check_once(e->run->plan);
    if (!status) {
        clear(&e->run->binding);
        return MESHCOLL_OK;
    }
    mc_request_drop(&e->run->head);
    return status;
}

/* Copies the tables, which are the caller's until the call returns. */
static int open_exchange(meshcoll_t *h, const mc_call_t *call, mc_exchange_t **exchange)
{
    const size_t p = (size_t)h->mesh.size, bytes = p * sizeof(size_t);
    mc_exchange_t *const e = calloc(1, sizeof *e + 4 * bytes);
    if (!e)
        return mc_fail_memory("an exchange of counts");
    e->args = call->args;
    mc_args_own_tables(&e->args, p, e->table);
    e->counts = mc_take_memory(h);
    int status = e->counts ? mc_workspace_reserve(e->counts, bytes) : MESHCOLL_ERR_NO_MEMORY;
    if (!status) {
        memcpy(e->counts->base, e->args.in_counts, bytes);
        status = prepare(h, call, e);
    }
    if (status)
        close(h, e);
    else
        *exchange = e;
    return status;
}

/* Where it fails, the exchange is closed. */
static int begin(mc_exchange_t *e)
{
    mc_run_t *const r = e->of, *const x = e->run;
    if (r && r->executor.held) /* its call is compared */
        mc_executor_hold(&x->executor);
    if (r) {
        r->exchange = e;
        mc_executor_unbind(&r->executor);
    }
    const int status = mc_request_start(&x->head);
    if (status && (x->task || !r)) {
        if (r)
            r->exchange = NULL;
        close(x->head.mesh, e);
    }
    if (status)
        mc_request_drop(&x->head);
    return status;
}

int mc_counts_bind(mc_run_t *r, const mc_call_t *call)
{
    mc_exchange_t *e;
    if (!r->plan || goes_straight(&call->best.strategy))
        return mc_run_bind(r, &call->args, NULL);
    const int status = open_exchange(r->head.mesh, call, &e);
    if (status)
        return status;
    e->of = r;
    return begin(e);
}

void mc_counts_checked(const mc_run_t *r)
{
    mc_run_t *const x = r->exchange->run;
    mc_executor_let_go(&x->executor);
    if (!r->head.why)
        return;
    x->head.why = "its call was not made";
    mc_executor_fail(&x->executor, r->executor.status);
}

int mc_counts_learn(meshcoll_t *h, const mc_call_t *call, mc_forwarded_t **forwarded)
{
    mc_waiting_t waiting = {0};
    mc_exchange_t *e;
    *forwarded = NULL;
    if (goes_straight(&call->best.strategy))
        return MESHCOLL_OK;
    int status = open_exchange(h, call, &e);
    if (!status)
        status = begin(e);
    if (status)
        return status;
    while (!e->has_ended)
        mc_wait_turn(h, &waiting);
    status = e->status;
    if (status)
        (void)mc_fail(status, "%s", h->job->failure.why);
    else
        *forwarded = e->forwarded;
    close(h, e);
    return status;
}
