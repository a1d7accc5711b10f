#include "runtime/request/served.h"

#include "compose/algorithms/registry.h"
#include "compose/planner/planner.h"
#include "runtime/explain/explain.h"
#include "runtime/handle/args.h"
#include "runtime/request/known.h"

#include <stdlib.h>

/* Memory ---------------------------------------------------------------------------------------- */

mc_workspace_t *mc_fresh_memory(void)
{
    mc_workspace_t *const fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        mc_fail_memory("scratch");
    return fresh;
}

void mc_return_memory(meshcoll_t *h, mc_workspace_t *workspace)
{
    workspace->next = NULL;
    if (h->spare)
        h->last_spare->next = workspace;
    else
        h->spare = workspace;
    h->last_spare = workspace;
}

void mc_calls_free_memory(meshcoll_t *h)
{
    while (h->spare) {
        mc_workspace_t *const w = h->spare;
        h->spare = w->next;
        mc_workspace_free(w);
        free(w);
    }
}

static void return_memory(meshcoll_t *h, mc_workspace_t **workspace)
{
    if (*workspace)
        mc_return_memory(h, *workspace);
    *workspace = NULL;
}

void mc_call_release(meshcoll_request_t *r)
{
    r->taken = r->released = false;
    r->limit_ms = 0;
    if (r->mesh) {
        return_memory(r->mesh, &r->workspace);
        return_memory(r->mesh, &r->staging);
    }
    if (!r->cached)
        mc_request_destroy(r);
}

/* The requests that serve calls ----------------------------------------------------------------- */

static bool serves(const meshcoll_request_t *r, const meshcoll_args_t *a, const mc_ranked_t *choice)
{
    return !r->taken && r->collective == a->collective && r->root == a->root &&
           r->by_comm == mc_plans_by_comm(r->mesh, a) &&
           mc_strategy_equal(&r->choice.strategy, &choice->strategy);
}

static bool has_room(const meshcoll_t *h)
{
    return !h->cached[MC_CACHED_REQUESTS - 1] && h->cached_steps < MC_CACHED_STEPS;
}

/* Finds a request that serves such a call: the one used last of those that know no call, else the one
 * used first, or with `known` none as long as there is room. The request stored in a choice only
 * saves the search. */
static meshcoll_request_t *find_cached(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t *choice,
                                       bool known)
{
    meshcoll_request_t *const last = choice->request;
    if (last && !last->taken && !(known && mc_known_holds(last)))
        return last;
    meshcoll_request_t *unknown = NULL, *oldest = NULL;
    for (int i = 0; i < MC_CACHED_REQUESTS && h->cached[i]; i++) {
        meshcoll_request_t *const r = h->cached[i];
        if (!serves(r, a, &choice->best))
            continue;
        if (!mc_known_holds(r) && (!unknown || r->used > unknown->used))
            unknown = r;
        if (!oldest || r->used < oldest->used)
            oldest = r;
    }
    meshcoll_request_t *const found = unknown || (known && has_room(h)) ? unknown : oldest;
    if (found)
        choice->request = found;
    return found;
}

static void uncache(meshcoll_t *h, int i)
{
    meshcoll_request_t *const r = h->cached[i];
    mc_choice_forget_request(&h->choice, r);
    mc_known_forget(r);
    h->cached_steps -= r->plan->n_steps;
    r->cached = false;
    if (!r->taken)
        mc_request_destroy(r);
    h->cached[i] = NULL;
}

/* Stores a request in the first free slot, or in that of the least recently used. Where all serve
 * calls it stays outside of the cache and is freed when its call is complete. */
static void add_cached(meshcoll_t *h, meshcoll_request_t *r)
{
    int oldest = -1, i = 0;
    for (; i < MC_CACHED_REQUESTS && h->cached[i]; i++)
        if (!h->cached[i]->taken && (oldest < 0 || h->cached[i]->used < h->cached[oldest]->used))
            oldest = i;
    if (i == MC_CACHED_REQUESTS) {
        if (oldest < 0)
            return;
        i = oldest;
        uncache(h, i);
    }
    r->cached = true;
    h->cached_steps += r->plan->n_steps;
    h->cached[i] = r;
}

static int find_or_make(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t *choice, bool known,
                        meshcoll_request_t **request)
{
    meshcoll_request_t *r = find_cached(h, a, choice, known);
    if (!r) {
        const mc_ranked_t best = choice->best;
        const int status = mc_request_create(h, a, &best, &r);
        if (status)
            return status;
        r->release = mc_call_release;
        /* a request with nothing to do has no plan worth keeping */
        if (r->plan)
            add_cached(h, r);
        if (r->cached)
            choice->request = r;
    }
    *request = r;
    return MESHCOLL_OK;
}

int mc_call_bind(meshcoll_request_t *r, const meshcoll_args_t *a, const mc_passing_t *passing)
{
    mc_operands_t operands = mc_operands_of(a);
    operands.passing = passing;
    mc_known_forget(r);
    if (!r->plan)
        return MESHCOLL_OK;
    const int status = mc_args_own_counts(r->mesh, a, &operands);
    if (status)
        return status;
    r->workspace = mc_take_memory(r->mesh);
    if (!r->workspace)
        return MESHCOLL_ERR_NO_MEMORY;
    if (r->watch)
        mc_explain_forced(r, a->strategy);
    return mc_request_bind(r, &operands);
}

/* Its last call failed before it began. It is bound anew, as failing has changed its lanes. */
static void revive(meshcoll_request_t *r)
{
    r->why = NULL;
    r->operands = (mc_operands_t){0};
    r->executor.state = MC_NEW;
}

int mc_call_serve(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t *choice, uint32_t number,
                  bool known, meshcoll_request_t **request)
{
    const int status = find_or_make(h, a, choice, known, request);
    if (status)
        return status;
    if ((*request)->why)
        revive(*request);
    mc_call_take(h, *request, number);
    return MESHCOLL_OK;
}

int mc_call_prepare(meshcoll_t *h, const meshcoll_args_t *a, const mc_strategy_t *strategy,
                    uint32_t number, meshcoll_request_t **request)
{
    const double bytes = (double)(a->count * meshcoll_datatype_size(a->datatype)) * h->mesh.size;
    mc_memory_t choice = {.best = {.strategy = *strategy}};
    choice.best.seconds = mc_strategy_seconds(strategy, &h->mesh, &h->links, a->root, bytes);
    return mc_call_serve(h, a, &choice, number, false, request);
}

void mc_calls_forget(meshcoll_t *h)
{
    for (int i = 0; i < MC_CACHED_REQUESTS; i++)
        if (h->cached[i])
            uncache(h, i);
}
