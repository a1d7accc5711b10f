#include "runtime/call/counts.h"

#include "runtime/call/cache.h"
#include "runtime/execute/executor.h"
#include "runtime/progress/failure.h"
#include "runtime/request/request.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(size_t) == 8, "counts travel as MESHCOLL_UINT64");

typedef struct mc_exchange {
    mc_run_t *of; /* is bound to `args` by what arrives */
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

static meshcoll_args_t args_of(const mc_workspace_t *counts, int32_t root)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = MESHCOLL_ALLTOALL,
                             .in = counts->base,
                             .out = counts->base,
                             .count = 1,
                             .datatype = MESHCOLL_UINT64,
                             .root = root,               /* the root of the blocks' call */
                             .strategy = "the blocks'"}; /* a name for MESHCOLL_EXPLAIN */
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

static void copy_table(const size_t **table, size_t n, size_t **at)
{
    if (!*table)
        return;
    memcpy(*at, *table, n * sizeof **table);
    *table = *at;
    *at += n;
}

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

/* Copies the tables, which are the caller's until the call returns. */
static int open_exchange(meshcoll_t *h, const meshcoll_args_t *a, mc_exchange_t **exchange)
{
    const size_t p = (size_t)h->mesh.size;
    mc_exchange_t *const e = calloc(1, sizeof *e + 4 * p * sizeof e->table[0]);
    if (!e)
        return mc_fail_memory("an exchange of counts");
    size_t *at = e->table;
    e->args = *a;
    copy_table(&e->args.counts, p, &at);
    copy_table(&e->args.displs, p, &at);
    copy_table(&e->args.in_counts, p, &at);
    copy_table(&e->args.in_displs, p, &at);
    e->counts = mc_take_memory(h);
    const int status =
        e->counts ? mc_workspace_reserve(e->counts, p * sizeof at[0]) : MESHCOLL_ERR_NO_MEMORY;
    if (status) {
        close(h, e);
        return status;
    }
    memcpy(e->counts->base, a->in_counts, p * sizeof at[0]);
    *exchange = e;
    return MESHCOLL_OK;
}

/* Zeroes SCRATCH: where there is no block there must be no count, and a rank's own block may never
 * be in SCRATCH. */
static void clear(const mc_binding_t *binding)
{
    if (binding->scratch_bytes > 0)
        memset(binding->scratch, 0, binding->scratch_bytes);
}

static int bind(mc_run_t *r, const meshcoll_args_t *a, const mc_forwarded_t *forwarded)
{
    if (!r->head.persistent)
        return mc_cache_bind(r, a, forwarded);
    mc_operands_t operands = mc_operands_of(a);
    operands.forwarded = forwarded;
    const int status = mc_run_bind(r, &operands);
    if (!status)
        mc_huge_pages(&r->executor);
    return status;
}

/* Binds the request that waits for the counts. */
static int bind_with(const mc_exchange_t *e)
{
    const mc_run_t *const x = e->run;
    const mc_forwarded_t table = {.count = (const size_t *)(const void *)x->binding.scratch,
                                  .before = x->binding.blocks[MC_SCRATCH].before,
                                  .first = x->plan->scratch_first,
                                  .n = x->plan->n_scratch};
    const int status =
        check_expected(x->head.mesh, &e->args, (const size_t *)(const void *)e->counts->base);
    return status ? status : bind(e->of, &e->args, &table);
}

/* The counts have arrived, the call was not made, or the mesh has failed or is closed. Where it fails, peers would wait
 * for the blocks: the mesh fails. */
static int finish(meshcoll_request_t *x)
{
    mc_exchange_t *const e = mc_run_of(x)->task;
    mc_run_t *const r = e->of;
    const int status = x->status ? x->status : bind_with(e);
    mc_run_of(x)->task = r->exchange = NULL;
    close(x->mesh, e);
    if (x->mesh && r->head.released && !r->head.running)
        mc_request_drop(&r->head);
    return status;
}

static const mc_request_kind_t exchange_kind = {MC_CACHED_RUN, .is_internal = true,
                                                .waits = MC_WAIT_COUNTS, .finish = finish};

/* A request that exchanges them. `e` NULL: for a caller who waits. */
static int prepare(meshcoll_t *h, const mc_workspace_t *counts, mc_own_call_t call,
                   mc_exchange_t *e, int32_t root, mc_run_t **run)
{
    const meshcoll_args_t args = args_of(counts, root);
    mc_run_t *x;
    call.args = &args;
    call.kind = e ? &exchange_kind : &mc_call_kind;
    call.task = e;
    int status = mc_cache_prepare(h, &call, &x);
    if (status)
        return status;
    status = check_once(x->plan);
    if (!status)
        clear(&x->binding);
    if (status)
        mc_request_drop(&x->head);
    else
        *run = x;
    return status;
}

/* `e->run` is prepared. */
static int begin(mc_exchange_t *e)
{
    mc_run_t *const r = e->of, *const x = e->run;
    if (r->executor.held) /* its call is compared */
        mc_executor_hold(&x->executor);
    r->exchange = e;
    mc_executor_unbind(&r->executor);
    const int status = mc_request_start(&x->head);
    if (status && x->task) {
        r->exchange = NULL;
        close(x->head.mesh, e);
    }
    if (status)
        mc_request_drop(&x->head);
    return status;
}

int mc_counts_bind(mc_run_t *r, const meshcoll_args_t *a, uint32_t number)
{
    meshcoll_t *const h = r->head.mesh;
    mc_strategy_t once = r->choice.strategy;
    mc_exchange_t *e = NULL;
    once.segments = 1;
    if (goes_straight(&once) || !r->plan)
        return bind(r, a, NULL);
    int status = open_exchange(h, a, &e);
    if (status)
        return status;
    e->of = r;
    status = prepare(h, e->counts, (mc_own_call_t){.strategy = &once, .number = number}, e, a->root,
                     &e->run);
    if (status) {
        close(h, e);
        return status;
    }
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

/* Waiting ----------------------------------------------------------------------------------------- */

/* Copies what the exchange left in SCRATCH. */
static int copy_passing(const mc_run_t *x, mc_forwarded_t **forwarded)
{
    const mc_binding_t *const b = &x->binding;
    const size_t *const before = b->blocks[MC_SCRATCH].before;
    const size_t n = x->plan->n_scratch, ends = before ? n + 1 : 0;
    mc_forwarded_t *const p = malloc(sizeof *p + b->scratch_bytes + ends * sizeof *before);
    if (!p)
        return mc_fail_memory("an exchange of counts");
    size_t *const count = (size_t *)(void *)(p + 1);
    size_t *const own_before = count + b->scratch_bytes / sizeof *count;
    if (b->scratch_bytes > 0)
        memcpy(count, b->scratch, b->scratch_bytes);
    if (before)
        memcpy(own_before, before, ends * sizeof *before);
    *p = (mc_forwarded_t){count, before ? own_before : NULL, x->plan->scratch_first, (uint32_t)n};
    *forwarded = p;
    return MESHCOLL_OK;
}

/* `counts` has this rank's, and then those of the blocks that it receives. */
static int exchange(meshcoll_t *h, const meshcoll_args_t *a, const mc_own_call_t *call,
                    const mc_workspace_t *counts, mc_forwarded_t **forwarded)
{
    mc_run_t *x;
    int status = prepare(h, counts, *call, NULL, a->root, &x);
    if (status)
        return status;
    status = mc_request_start(&x->head);
    if (status) {
        mc_request_drop(&x->head);
        return status;
    }
    status = mc_request_await(&x->head);
    if (!status)
        status = check_expected(h, a, (const size_t *)(const void *)counts->base);
    if (!status)
        status = copy_passing(x, forwarded);
    const int ran = mc_request_complete(&x->head);
    return status ? status : ran;
}

int mc_counts_learn(meshcoll_t *h, const meshcoll_args_t *a, const mc_strategy_t *strategy,
                    uint32_t number, mc_forwarded_t **forwarded)
{
    const size_t bytes = (size_t)h->mesh.size * sizeof *a->in_counts;
    mc_strategy_t once = *strategy;
    mc_forwarded_t *made = NULL;
    once.segments = 1;
    if (goes_straight(&once)) {
        *forwarded = NULL;
        return MESHCOLL_OK;
    }
    mc_workspace_t *const counts = mc_take_memory(h);
    int status = counts ? mc_workspace_reserve(counts, bytes) : MESHCOLL_ERR_NO_MEMORY;
    if (!status) {
        memcpy(counts->base, a->in_counts, bytes);
        status =
            exchange(h, a, &(mc_own_call_t){.strategy = &once, .number = number}, counts, &made);
    }
    mc_return_memory(h, counts);
    if (status)
        free(made);
    else
        *forwarded = made;
    return status;
}
