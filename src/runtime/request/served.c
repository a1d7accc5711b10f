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
    if (!r->in_cache.in)
        mc_request_destroy(r);
}

/* The requests that serve calls ----------------------------------------------------------------- */

static meshcoll_request_t *request_of(mc_list_node_t *n, size_t offset)
{
    return (meshcoll_request_t *)((char *)n - offset);
}

static bool serves(const meshcoll_request_t *r, const meshcoll_args_t *a, const mc_strategy_t *s)
{
    return r->collective == a->collective && r->root == a->root &&
           r->by_comm == mc_plans_by_comm(r->mesh, a) && mc_strategy_equal(&r->choice.strategy, s);
}

static mc_list_t *list_of(meshcoll_t *h, int32_t root, const mc_strategy_t *s)
{
    const uint32_t first = s->n_phases > 0 ? (uint32_t)s->phase[0].algorithm : 0;
    const uint32_t key = (uint32_t)root << 20 ^ (uint32_t)s->segments << 12 ^
                         (uint32_t)s->n_phases << 10 ^ first << 4 ^ (uint32_t)s->collective;
    return &h->serving[(key * UINT32_C(0x9e3779b1)) >> 16 & (MC_CACHED_LISTS - 1)];
}

static bool has_room(const meshcoll_t *h)
{
    return h->n_cached < MC_CACHED_REQUESTS && h->cached_steps < MC_CACHED_STEPS;
}

static void to_end(mc_list_t *list, mc_list_node_t *n)
{
    mc_list_remove(n);
    mc_list_append(list, n);
}

/* Finds a request that serves such a call: the one used last of those that know no call, else the one
 * used first, or with `known` none as long as there is room. The request stored in a choice only
 * saves the search, which leaves those that serve calls for last. */
static meshcoll_request_t *find_cached(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t *choice,
                                       bool known)
{
    meshcoll_request_t *const last = choice->request;
    if (last && !last->taken && !(known && mc_known_holds(last)))
        return last;
    mc_list_t *const list = list_of(h, a->root, &choice->best.strategy);
    meshcoll_request_t *unknown = NULL, *oldest = NULL;
    mc_list_node_t *n = list->first;
    for (int looks = 0; n && looks < MC_CACHED_LOOKS; looks++) {
        meshcoll_request_t *const r = request_of(n, offsetof(meshcoll_request_t, in_serving));
        n = n->next;
        if (r->taken) {
            to_end(list, &r->in_serving);
            continue;
        }
        if (!serves(r, a, &choice->best.strategy))
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

static void uncache(meshcoll_t *h, meshcoll_request_t *r)
{
    mc_choice_forget_request(&h->choice, r);
    mc_known_forget(r);
    h->n_cached--;
    h->cached_steps -= r->plan->n_steps;
    mc_list_remove(&r->in_cache);
    mc_list_remove(&r->in_serving);
    if (!r->taken)
        mc_request_destroy(r);
}

/* Of the first ones, the one that was not used for longest; NULL: they all serve calls. */
static meshcoll_request_t *find_oldest(meshcoll_t *h)
{
    meshcoll_request_t *oldest = NULL;
    for (int looks = 0; h->cached.first && looks < MC_CACHED_LOOKS; looks++) {
        meshcoll_request_t *const r =
            request_of(h->cached.first, offsetof(meshcoll_request_t, in_cache));
        to_end(&h->cached, &r->in_cache);
        if (!r->taken && (!oldest || r->used < oldest->used))
            oldest = r;
    }
    return oldest;
}

/* In place of another one where there is no room. Where all serve calls there are as many as the program has in
 * flight, up to a number of steps; beyond it is freed when its call is complete. */
static void add_cached(meshcoll_t *h, meshcoll_request_t *r)
{
    meshcoll_request_t *const oldest = h->n_cached < MC_CACHED_REQUESTS ? NULL : find_oldest(h);
    if (oldest)
        uncache(h, oldest);
    else if (h->n_cached >= MC_CACHED_REQUESTS && h->cached_steps >= MC_CACHED_MOST_STEPS)
        return;
    h->n_cached++;
    h->cached_steps += r->plan->n_steps;
    mc_list_append(&h->cached, &r->in_cache);
    mc_list_append(list_of(h, r->root, &r->choice.strategy), &r->in_serving);
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
        if (r->in_cache.in)
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
    mc_request_unbind(r);
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
    const int status = mc_call_serve(h, a, &choice, number, false, request);
    if (!status)
        mc_request_sign(*request, 0);
    return status;
}

void mc_calls_forget(meshcoll_t *h)
{
    while (h->cached.first)
        uncache(h, request_of(h->cached.first, offsetof(meshcoll_request_t, in_cache)));
}
