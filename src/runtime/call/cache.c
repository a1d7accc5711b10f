#include "runtime/call/cache.h"

#include "base/system/log.h"
#include "base/table.h"
#include "runtime/call/args.h"
#include "runtime/call/request.h"
#include "runtime/connect/connections.h"

#include <stdlib.h>
#include <string.h>

/* It is complete. */
void mc_cache_release(meshcoll_request_t *r)
{
    mc_cached_t *const c = (mc_cached_t *)r;
    r->kind = &mc_call_kind;
    r->taken = r->released = false;
    r->watched.limit = 0;
    if (r->mesh) {
        mc_return_memory(r->mesh, c->run.workspace);
        mc_return_memory(r->mesh, c->run.staging);
        c->run.workspace = c->run.staging = NULL;
    }
    if (!c->node.in)
        mc_run_destroy(r);
}

const mc_request_kind_t mc_call_kind = {MC_CACHED_RUN};

/* The circles of buckets, and what is in the cache ----------------------------------------------- */

/* Behind the one that was made last, so that many that are made one after the other lie in the order of the calls; else
 * as the last that is looked at. */
static void enter_bucket(meshcoll_t *h, mc_cached_t *c, uint32_t bucket)
{
    mc_cached_t **const first = &h->cache.bucket[bucket], *const newest = h->cache.newest;
    c->bucket = bucket;
    if (!*first)
        *first = c->next = c->before = c;
    c->before = newest && newest->bucket == bucket ? newest : (*first)->before;
    c->next = c->before->next;
    c->next->before = c->before->next = c;
}

static void leave_bucket(meshcoll_t *h, const mc_cached_t *c)
{
    mc_cached_t **const first = &h->cache.bucket[c->bucket];
    c->next->before = c->before;
    c->before->next = c->next;
    if (*first == c)
        *first = c->next == c ? NULL : c->next;
    if (h->cache.newest == c)
        h->cache.newest = NULL;
}

static uint64_t steps_of(const mc_cached_t *c)
{
    return c->run.plan ? c->run.plan->n_steps : 0;
}

static void uncache(meshcoll_t *h, mc_cached_t *c)
{
    leave_bucket(h, c);
    h->cache.n--;
    h->cache.n_steps -= steps_of(c);
    mc_list_remove(&c->node);
    if (!c->run.head.taken)
        mc_run_destroy(&c->run.head);
}

static bool has_room(const mc_call_cache_t *c)
{
    return c->n < MC_CACHED_REQUESTS && c->n_steps < MC_CACHED_STEPS;
}

/* Of the next ones in turn, the one that was not used for longest; NULL: they all serve calls. */
static mc_cached_t *find_oldest(mc_call_cache_t *cache)
{
    mc_cached_t *oldest = NULL;
    for (int looks = 0; cache->requests.first && looks < MC_CACHE_LOOKS; looks++) {
        mc_list_node_t *const n = cache->requests.first;
        mc_cached_t *const c = mc_cached_of(n);
        mc_list_remove(n);
        mc_list_append(&cache->requests, n);
        if (!c->run.head.taken && (!oldest || c->used < oldest->used))
            oldest = c;
    }
    return oldest;
}

/* In place of another one where there is no room. Where all serve calls there are as many as the program has in
 * flight, up to a number of steps; beyond it is freed when its call is complete. */
static void add(meshcoll_t *h, mc_cached_t *c, uint32_t bucket)
{
    mc_call_cache_t *const cache = &h->cache;
    mc_cached_t *const oldest = cache->n < MC_CACHED_REQUESTS ? NULL : find_oldest(cache);
    if (oldest)
        uncache(h, oldest);
    else if (cache->n >= MC_CACHED_REQUESTS && cache->n_steps >= MC_CACHED_MOST_STEPS)
        return;
    cache->n++;
    mc_list_append(&cache->requests, &c->node);
    enter_bucket(h, c, bucket);
    cache->newest = c;
}

/* Choices ----------------------------------------------------------------------------------------- */

/* Of an alltoallv. A rank does not know the sizes of other ranks' blocks, so that ranks would choose differently; and
 * a strategy that passes blocks through other ranks must exchange the counts first. So pairwise, unless a strategy is
 * forced. */
static mc_choice_key_t key_of_exchange(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const bool forced = h->choice.is_forced[a->collective];
    return (mc_choice_key_t){.collective = a->collective,
                             .bytes = mc_args_bytes(h, a),
                             .pacing.wire = -1,
                             .strategy = a->strategy ? a->strategy
                                         : forced    ? NULL
                                                     : "flat-pairwise"};
}

/* Where only the root knows the sizes of the blocks. What is forced for the mesh does not hold. */
static mc_choice_key_t key_of_star(const meshcoll_args_t *a)
{
    return (mc_choice_key_t){.collective = a->collective,
                             .root = a->root,
                             .bytes = meshcoll_datatype_size(a->datatype),
                             .pacing.wire = -1,
                             .strategy = a->strategy ? a->strategy : "flat-star"};
}

static mc_choice_key_t key_of(const meshcoll_t *h, const mc_call_t *call)
{
    const meshcoll_args_t *const a = &call->args;
    if (a->in_counts)
        return key_of_exchange(h, a);
    if (a->counts_at_root)
        return key_of_star(a);
    /* the aligned tree over the communicator's ranks keeps their order too */
    const mc_numbering_t *const aligned = mc_args_aligned(h, a);
    const bool in_order = !aligned && !mc_op_commutes(a->op);
    const bool one_line = in_order && h->order.comm_rank;
    return (mc_choice_key_t){.collective = a->collective,
                             .root = one_line ? mc_comm_rank_of(&h->order, a->root) : a->root,
                             .bytes = mc_args_bytes(h, a),
                             .strategy = a->strategy,
                             .unforced = call->is_barrier,
                             .in_order = in_order,
                             .one_line = one_line,
                             .ordered = h->calls.adapt && h->calls.ordered && !aligned &&
                                        mc_moves[a->collective].reduces &&
                                        !mc_op_associates(a->op, a->datatype),
                             .memory = (uint8_t)(call->on_device + (call->window > 0)),
                             .pacing = mc_handle_pacing(h),
                             .aligned = aligned};
}

void mc_cache_key(const meshcoll_t *h, mc_call_t *call)
{
    const meshcoll_args_t *const a = &call->args;
    call->key = key_of(h, call);
    call->bucket = mc_cache_bucket(a->collective, mc_comm_rank_of(&h->order, a->root), a->count);
    call->by_comm = mc_plans_by_comm(h, a);
}

/* Does the root exchange each block with its rank, through no other? */
static int check_star(const meshcoll_t *h, const mc_strategy_t *s)
{
    bool star = mc_strategy_is_flat(s, &h->mesh);
    for (int32_t i = 0; i < s->n_phases; i++)
        star = star && strcmp(mc_algorithms[s->phase[i].algorithm].name, "star") == 0;
    if (star)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_STRATEGY,
                   "%s: where only the root has the counts, no other rank can pass a block on: "
                   "expected \"flat-star\", or %s:star along all dimensions",
                   meshcoll_collective_name(s->collective),
                   meshcoll_collective_name(s->collective));
}

static void tell(const meshcoll_t *h, const mc_choice_key_t *key, const mc_ranked_t *chosen)
{
    char strategy[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(strategy, sizeof strategy);
    mc_strategy_print(&chosen->strategy, &h->mesh, &text);
    mc_log(MC_LOG_DEBUG, "%s of %s on %s: %s, %s predicted",
           meshcoll_collective_name(key->collective), mc_print_bytes((double)key->bytes).text,
           h->text, strategy, mc_print_seconds(chosen->seconds).text);
}

/* What is not the planner's choice is not the same for all requests of the key. */
static bool is_of(const mc_cached_t *c, const mc_call_t *call)
{
    const mc_choice_key_t *const key = &call->key;
    return mc_choice_key_same(&c->key, key) && !c->key.strategy == !key->strategy &&
           c->key.learned == key->learned &&
           ((!key->strategy && !key->learned) ||
            mc_strategy_equal(&c->run.choice.strategy, &call->best.strategy));
}

/* Takes the choice of a request of the same key, whatever it does at present. */
int mc_cache_look(meshcoll_t *h, mc_call_t *call)
{
    const mc_cached_t *const first = call->key.strategy ? NULL : h->cache.bucket[call->bucket];
    const mc_cached_t *c = first;
    int status = MESHCOLL_OK;
    for (int looks = 0; c && !is_of(c, call); looks++)
        c = c->next == first || looks == MC_CACHE_LOOKS ? NULL : c->next;
    if (c)
        call->best = c->run.choice;
    else
        status = mc_choose(&h->choice, &h->mesh, &h->links, &call->key, &call->best);
    if (!status && call->args.counts_at_root)
        status = check_star(h, &call->best.strategy);
    if (status)
        return status;
    call->is_known = c;
    call->is_chosen = true;
    if (!c && mc_log_has(MC_LOG_DEBUG) && mc_comm_rank_of(&h->order, h->rank) == 0)
        tell(h, &call->key, &call->best);
    return MESHCOLL_OK;
}

/* Finds a request of the key that serves no call: the one used last of those that no call finds bound, else the one
 * used first, or none if the call will find it bound and there is room. The next search begins with it. */
static mc_cached_t *find_free(meshcoll_t *h, const mc_call_t *call, bool again)
{
    mc_cached_t **const first = &h->cache.bucket[call->bucket];
    mc_cached_t *c = *first, *once = NULL, *oldest = NULL;
    for (int looks = 0; c && looks < MC_CACHE_LOOKS; looks++) {
        if (!c->run.head.taken && is_of(c, call)) {
            if (c->kind == MC_KIND_ONCE && (!once || c->used > once->used))
                once = c;
            if (!oldest || c->used < oldest->used)
                oldest = c;
        }
        c = c->next == *first ? NULL : c->next;
    }
    mc_cached_t *const found = once || (again && has_room(&h->cache)) ? once : oldest;
    if (found)
        *first = found;
    else if (c)
        *first = c; /* those before serve calls */
    return found;
}

/* Finds a request of another key with the same plan, which no call finds bound, or where there is no room the one
 * used first. It serves the key from now on. */
static mc_cached_t *find_like(meshcoll_t *h, const mc_call_t *call)
{
    const bool room = has_room(&h->cache);
    mc_cached_t *found = NULL;
    mc_list_node_t *n = h->cache.requests.last;
    for (int looks = 0; n && looks < MC_CACHED_REQUESTS; looks++, n = n->before) {
        mc_cached_t *const c = mc_cached_of(n);
        const mc_run_t *const r = &c->run;
        const bool is_free = !r->head.taken && r->plan && (!room || c->kind == MC_KIND_ONCE);
        if (is_free && !(found && c->used > found->used) && r->root == call->args.root &&
            r->by_comm == call->by_comm &&
            mc_strategy_equal(&r->choice.strategy, &call->best.strategy))
            found = c;
    }
    if (!found)
        return NULL;
    leave_bucket(h, found);
    enter_bucket(h, found, call->bucket);
    found->key = call->key;
    found->run.choice = call->best;
    return found;
}

/* Serving ----------------------------------------------------------------------------------------- */

/* A request that has the choice only, in the cache if there is room. */
static int make(meshcoll_t *h, const mc_call_t *call, mc_cached_t **request)
{
    mc_run_t *r;
    const int status = mc_run_make(h, &mc_call_kind, call, &r);
    if (status)
        return status;
    mc_cached_t *const c = (mc_cached_t *)r;
    c->kind = MC_KIND_ONCE;
    c->key = call->key;
    add(h, c, call->bucket);
    *request = c;
    return MESHCOLL_OK;
}

int mc_cache_choose(meshcoll_t *h, mc_call_t *call)
{
    mc_cached_t *c;
    mc_cache_key(h, call);
    int status = mc_cache_look(h, call);
    if (!status && !call->is_known && !call->key.strategy) {
        status = make(h, call, &c);
        if (!status && !c->node.in)
            mc_run_destroy(&c->run.head);
    }
    return status;
}

int mc_cache_plan(meshcoll_t *h, mc_cached_t *c, const mc_call_t *call, char **known_text)
{
    mc_run_t *const r = &c->run;
    const uint64_t before = steps_of(c);
    int status = MESHCOLL_OK;
    c->key = call->key;
    if (!mc_strategy_equal(&r->choice.strategy, &call->best.strategy)) {
        mc_run_unplan(r);
        *known_text = r->text;
        r->text = NULL;
        status = mc_run_choose(r, &call->best);
    }
    if (!status && !r->plan)
        status = mc_run_plan(r, call);
    if (c->node.in)
        h->cache.n_steps += steps_of(c) - before;
    return status;
}

static int plan(meshcoll_t *h, mc_cached_t *c, const mc_call_t *call)
{
    char *none = NULL;
    const int status = mc_cache_plan(h, c, call, &none);
    if (status && c->node.in)
        uncache(h, c);
    else if (status)
        mc_run_destroy(&c->run.head);
    return status;
}

/* Its last call failed before it began. It is bound anew, as failing has changed its lanes. */
static void revive(mc_run_t *r)
{
    r->head.why = NULL;
    mc_run_unbind(r);
    r->executor.state = MC_NEW;
}

int mc_cache_serve(meshcoll_t *h, const mc_call_t *call, bool again, mc_cached_t **request)
{
    mc_cached_t *c = find_free(h, call, again);
    int status = MESHCOLL_OK;
    if (!c)
        c = find_like(h, call);
    if (!c)
        status = make(h, call, &c);
    if (!status && !c->run.plan && call->args.count > 0 && !call->is_deferred)
        status = plan(h, c, call);
    if (status)
        return status;
    if (c->run.head.why)
        revive(&c->run);
    c->kind = MC_KIND_ONCE;
    mc_cache_take(h, c, call->number.own);
    *request = c;
    return MESHCOLL_OK;
}

int mc_cache_prepare(meshcoll_t *h, mc_call_t *call, const mc_request_kind_t *kind, void *task,
                     mc_run_t **run)
{
    const meshcoll_args_t *const a = &call->args;
    mc_cached_t *c;
    mc_cache_key(h, call);
    call->is_own = true;
    call->best.seconds = mc_strategy_seconds(&call->best.strategy, &h->mesh, &h->links, a->root,
                                             (double)call->key.bytes);
    int status = mc_cache_serve(h, call, false, &c);
    if (status)
        return status;
    mc_run_t *const r = &c->run;
    mc_run_sign(r, 0, 0);
    r->head.kind = kind;
    r->task = task;
    r->head.released = task;
    status = mc_run_bind(r, a, NULL);
    if (status)
        mc_request_drop(&r->head);
    else
        *run = r;
    return status;
}

void mc_cache_note(mc_cached_t *c, const mc_call_t *call, uint64_t kind, int64_t bytes)
{
    const meshcoll_args_t *const given = call->given;
    const mc_needs_t needs = mc_args_needs(c->run.head.mesh, given);
    const char *const in = given->in, *const out = given->out;
    c->kind = kind;
    c->left = call->left;
    c->count = given->count;
    c->in = in;
    c->out = given->out;
    c->bytes = bytes;
    c->in_bytes = needs.in;
    c->out_bytes = needs.out;
    c->apart = !needs.in || !needs.out || in + needs.in <= out || out + needs.out <= in;
}

void mc_cache_unbind(meshcoll_t *h, const uint64_t *left)
{
    for (mc_list_node_t *n = h->cache.requests.first; n; n = n->next)
        if (!left || mc_cached_of(n)->left == left)
            mc_cached_of(n)->kind = MC_KIND_ONCE;
}

void mc_cache_drop(meshcoll_t *h, int collective)
{
    for (mc_list_node_t *n = h->cache.requests.first, *next; n; n = next) {
        const mc_run_t *const r = &mc_cached_of(n)->run;
        next = n->next;
        if (collective < 0 || (int)r->choice.strategy.collective == collective)
            uncache(h, mc_cached_of(n));
    }
}
