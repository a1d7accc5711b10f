#include "runtime/calls.h"

#include "compose/registry.h"
#include "runtime/explain.h"
#include "runtime/failure.h"
#include "runtime/group.h"
#include "runtime/passing.h"
#include "runtime/threads.h"

#include <stdlib.h>
#include <string.h>

/* Numbers --------------------------------------------------------------------------------------- */

enum { HALF = 1 << (MC_TAG_OPERATION_BITS - 1) };

uint32_t mc_next_call(meshcoll_t *h)
{
    return h->n_calls++ % HALF;
}

uint32_t mc_next_persistent(meshcoll_t *h)
{
    return HALF + h->n_persistent++ % (MC_TAG_GREETING - HALF);
}

/* Memory ---------------------------------------------------------------------------------------- */

/* First in, first out: a loop that starts the same calls again finds each where it was bound before,
 * and binds nothing. */
mc_workspace_t *mc_take_memory(meshcoll_t *h)
{
    mc_workspace_t *const w = h->spare;
    if (!w) {
        mc_workspace_t *const fresh = calloc(1, sizeof *fresh);
        if (!fresh)
            mc_fail_memory("scratch");
        return fresh;
    }
    h->spare = w->next;
    return w;
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

/* The requests that serve calls ----------------------------------------------------------------- */

static bool serves(const meshcoll_request_t *r, const meshcoll_args_t *a, const mc_ranked_t *choice)
{
    return !r->taken && r->collective == a->collective && r->root == a->root &&
           r->by_comm == mc_plans_by_comm(r->mesh, a) &&
           mc_strategy_equal(&r->choice.strategy, &choice->strategy);
}

/* That a choice remembers its request only saves looking for it. */
static meshcoll_request_t *find_cached(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t *choice)
{
    if (choice->request && !choice->request->taken)
        return choice->request;
    meshcoll_request_t *found = NULL;
    for (int i = 0; i < MC_CACHED_REQUESTS && h->cached[i]; i++) {
        meshcoll_request_t *const r = h->cached[i];
        if ((!found || r->used > found->used) && serves(r, a, &choice->best))
            found = r;
    }
    if (found)
        choice->request = found;
    return found;
}

static void uncache(meshcoll_t *h, int i)
{
    meshcoll_request_t *const r = h->cached[i];
    mc_choice_forget_request(&h->choice, r);
    for (int k = 0; k < MC_KNOWN_CALLS; k++)
        if (h->known[k] == r)
            h->known[k] = NULL;
    r->cached = false;
    if (!r->taken)
        mc_request_destroy(r);
    h->cached[i] = NULL;
}

/* In the first free place, or that of the one that was not used for longest. Where all serve calls,
 * it stays outside, and goes when its call is complete. */
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
    h->cached[i] = r;
}

static int find_or_make(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t *choice,
                        meshcoll_request_t **request)
{
    meshcoll_request_t *r = find_cached(h, a, choice);
    if (!r) {
        const mc_ranked_t best = choice->best;
        const int status = mc_request_create(h, a, &best, &r);
        if (status)
            return status;
        /* nothing to do has no plan to keep */
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
    r->known.choice = NULL;
    if (!r->plan)
        return MESHCOLL_OK;
    r->workspace = mc_take_memory(r->mesh);
    if (!r->workspace)
        return MESHCOLL_ERR_NO_MEMORY;
    if (r->watch)
        mc_explain_forced(r, a->strategy);
    return mc_request_bind(r, &operands);
}

/* A rank knows no other's sizes, so that ranks would choose differently; and what passes other ranks
 * costs an exchange of the counts first. Straight then, unless somebody wants something else. */
static int choose_straight(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t **choice)
{
    const mc_wish_t wish = {.collective = a->collective,
                            .bytes = a->count * meshcoll_datatype_size(a->datatype),
                            .wire = -1,
                            .strategy = a->strategy                          ? a->strategy
                                        : h->choice.is_forced[a->collective] ? NULL
                                                                             : "flat-pairwise"};
    return mc_choose(&h->choice, &h->mesh, &h->links, &wish, choice);
}

int mc_call_choose(meshcoll_t *h, const meshcoll_args_t *a, bool is_barrier, mc_memory_t **choice)
{
    if (a->in_counts)
        return choose_straight(h, a, choice);
    const bool has_blocks = mc_move_has_blocks(&mc_moves[a->collective]) && !a->counts;
    /* the aligned tree over the communicator's ranks is in their order too */
    const mc_numbering_t *const aligned = mc_args_aligned(h, a);
    const bool in_order = !aligned && !mc_op_commutes(a->op);
    const bool one_line = in_order && h->order.comm_rank;
    const mc_wish_t wish = {.collective = a->collective,
                            .root = one_line ? mc_comm_rank_of(&h->order, a->root) : a->root,
                            .bytes = a->count * meshcoll_datatype_size(a->datatype) *
                                     (has_blocks ? (uint64_t)h->mesh.size : 1),
                            .strategy = a->strategy,
                            .unforced = is_barrier,
                            .in_order = in_order,
                            .one_line = one_line,
                            .wire = mc_handle_wire(h),
                            .beside = h->beside,
                            .window = mc_handle_window(h),
                            .aligned = aligned};
    return mc_choose(&h->choice, &h->mesh, &h->links, &wish, choice);
}

/* Bound to what it is called with, and of an alltoallv to what passes this rank. */
static int bind(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t *r)
{
    const meshcoll_args_t *const a = &asked->args;
    mc_passed_t passed;
    if (!a->in_counts)
        return mc_call_bind(r, a, NULL);
    int status = mc_passing_exchange(h, a, &r->choice.strategy, asked->counts, &passed);
    if (status)
        return status;
    status = mc_call_bind(r, a, passed.request ? &passed.table : NULL);
    mc_passing_end(h, &passed);
    return status;
}

static void take(meshcoll_t *h, meshcoll_request_t *r, uint32_t number)
{
    r->taken = true;
    r->operation = number;
    r->used = ++h->n_taken;
}

static int prepare(meshcoll_t *h, const meshcoll_args_t *a, mc_memory_t *choice, uint32_t number,
                   meshcoll_request_t **request)
{
    const int status = find_or_make(h, a, choice, request);
    if (status)
        return status;
    take(h, *request, number);
    return MESHCOLL_OK;
}

int mc_call_prepare(meshcoll_t *h, const meshcoll_args_t *a, const mc_strategy_t *strategy,
                    uint32_t number, meshcoll_request_t **request)
{
    const double bytes = (double)(a->count * meshcoll_datatype_size(a->datatype)) * h->mesh.size;
    mc_memory_t choice = {.best = {.strategy = *strategy}};
    choice.best.seconds = mc_strategy_seconds(strategy, &h->mesh, &h->links, a->root, bytes);
    return prepare(h, a, &choice, number, request);
}

/* What was bound with `status`. */
static int start(meshcoll_request_t *r, int status, meshcoll_request_t **request)
{
    if (!status)
        status = mc_request_start(r);
    if (status) {
        mc_request_drop(r);
        return status;
    }
    *request = r;
    return MESHCOLL_OK;
}

/* Calls that were made before -------------------------------------------------------------------- */

static meshcoll_request_t **place_of(meshcoll_t *h, const meshcoll_args_t *a)
{
    const uint64_t key =
        ((uintptr_t)a->in * 5 + (uintptr_t)a->out) ^ a->count << 4 ^ (uint64_t)a->collective << 56;
    return &h->known[key * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (MC_KNOWN_CALLS - 1)];
}

static bool same_call(const meshcoll_args_t *a, const meshcoll_args_t *b)
{
    return a->size == b->size && a->in == b->in && a->out == b->out && a->count == b->count &&
           a->collective == b->collective && a->datatype == b->datatype && a->op == b->op &&
           a->root == b->root && !a->strategy && !a->counts && !a->in_counts;
}

/* Checks, choice and binding hang on nothing but what the call is given, and what it was forced to.
 * Tables of counts may have changed where they lie, and a user's operation may be gone. */
static void make_known(meshcoll_t *h, const mc_asked_t *asked, mc_memory_t *choice,
                       meshcoll_request_t *r)
{
    const meshcoll_args_t *const a = asked->given;
    if (!a || a->size != sizeof *a || a->strategy || a->counts || a->in_counts ||
        (unsigned)a->op >= MESHCOLL_OPS || !r->cached || r->watch)
        return;
    r->known = (mc_known_t){*a, asked->is_barrier, choice, h->choice.n_forgotten};
    *place_of(h, a) = r;
}

/* The request that served it the last time, and is bound as then; NULL: none. */
static meshcoll_request_t *find_known(meshcoll_t *h, const meshcoll_args_t *a, bool is_barrier)
{
    meshcoll_request_t *const r = *place_of(h, a);
    const bool same = r && !r->taken && r->known.choice && same_call(a, &r->known.args) &&
                      r->known.is_barrier == is_barrier &&
                      r->known.forgotten == h->choice.n_forgotten;
    return same ? r : NULL;
}

/* With the same operands, where the memory it was given is another. */
static int bind_again(meshcoll_request_t *r)
{
    const mc_operands_t operands = r->operands;
    const int status = r->workspace ? mc_request_bind(r, &operands) : MESHCOLL_ERR_NO_MEMORY;
    if (status) /* it is bound to nothing then */
        r->known.choice = NULL;
    return status;
}

static int start_known(meshcoll_t *h, meshcoll_request_t *r, meshcoll_request_t **request)
{
    take(h, r, mc_next_call(h));
    mc_choice_touch(&h->choice, r->known.choice);
    r->workspace = mc_take_memory(h);
    const bool stays = r->workspace && mc_request_stays(r);
    return start(r, stays ? MESHCOLL_OK : bind_again(r), request);
}

int mc_call_start(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t **request)
{
    const meshcoll_args_t *const a = &asked->args;
    mc_memory_t *choice;
    meshcoll_request_t *r;
    int status = mc_call_choose(h, a, asked->is_barrier, &choice);
    if (!status)
        status = prepare(h, a, choice, asked->number, &r);
    if (status) {
        if (asked->staging)
            mc_return_memory(h, asked->staging);
        return status;
    }
    r->staging = asked->staging;
    status = bind(h, asked, r);
    if (!status)
        make_known(h, asked, choice, r);
    return start(r, status, request);
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
    if (r->mesh) {
        return_memory(r->mesh, &r->workspace);
        return_memory(r->mesh, &r->staging);
    }
    if (!r->cached)
        mc_request_destroy(r);
}

void mc_calls_forget(meshcoll_t *h)
{
    for (int i = 0; i < MC_CACHED_REQUESTS; i++)
        if (h->cached[i])
            uncache(h, i);
}

/* Calls ----------------------------------------------------------------------------------------- */

void mc_call_number(meshcoll_t *h, const meshcoll_args_t *given, mc_asked_t *asked)
{
    asked->number = mc_next_call(h);
    if (mc_call_exchanges(given))
        asked->counts = mc_next_call(h);
}

/* What both ways of calling begin with. Whoever fails here has taken its number, so that the next
 * call has the same one on all ranks. */
static int enter(meshcoll_t *h, const meshcoll_args_t *given, mc_asked_t *asked)
{
    mc_call_number(h, given, asked);
    const int status = mc_failure_check(h);
    return status ? status : mc_args_check(h, given, &asked->args);
}

static int complete(meshcoll_request_t *r)
{
    mc_request_await(r);
    return mc_request_tell(r);
}

static int run_anew(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier)
{
    mc_asked_t asked = {.is_barrier = is_barrier, .given = given};
    meshcoll_request_t *r;
    int status = enter(h, given, &asked);
    if (status || asked.args.count == 0)
        return status;
    status = mc_call_start(h, &asked, &r);
    return status ? status : complete(r);
}

static int run(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier)
{
    if (h->group_open)
        return mc_group_add(h, given, is_barrier);
    meshcoll_request_t *r = find_known(h, given, is_barrier);
    if (!r)
        return run_anew(h, given, is_barrier);
    const int status = start_known(h, r, &r);
    return status ? status : complete(r);
}

static int begin(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier,
                 meshcoll_request_t **request)
{
    mc_asked_t asked = {.is_barrier = is_barrier, .given = given};
    if (h->group_open) {
        /* the group's end is its end too */
        *request = NULL;
        return mc_group_add(h, given, is_barrier);
    }
    meshcoll_request_t *const r = find_known(h, given, is_barrier);
    if (r)
        return start_known(h, r, request);
    const int status = enter(h, given, &asked);
    return status ? status : mc_call_start(h, &asked, request);
}

static int no_mesh(void)
{
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "the mesh is NULL");
}

static int check_place(const meshcoll_t *h, meshcoll_request_t *const *request, const char *what)
{
    if (!h)
        return no_mesh();
    if (!request)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s needs a place for its request: it is NULL",
                       what);
    return MESHCOLL_OK;
}

static int check_begin(const meshcoll_t *h, meshcoll_request_t *const *request)
{
    return check_place(h, request, "a call that does not wait");
}

static int check_init(const meshcoll_t *h, meshcoll_request_t *const *request)
{
    return check_place(h, request, "a persistent operation");
}

static int refuse(meshcoll_t *h, bool is_persistent, bool exchanges, int status)
{
    if (!h)
        return status;
    mc_lock(h);
    (void)(is_persistent ? mc_next_persistent(h) : mc_next_call(h));
    if (exchanges)
        (void)mc_next_call(h);
    if (h->group_open && !is_persistent)
        mc_group_refuse(h, status);
    mc_unlock(h);
    return status;
}

int mc_call_refuse(meshcoll_t *h, bool exchanges, int status)
{
    return refuse(h, false, exchanges, status);
}

int mc_init_refuse(meshcoll_t *h, bool exchanges, int status)
{
    return refuse(h, true, exchanges, status);
}

int mc_run(meshcoll_t *h, const meshcoll_args_t *given)
{
    if (!h)
        return no_mesh();
    mc_lock(h);
    const int status = run(h, given, false);
    mc_unlock(h);
    return status;
}

int mc_begin(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request)
{
    int status = check_begin(h, request);
    if (status)
        return mc_call_refuse(h, mc_call_exchanges(given), status);
    mc_lock(h);
    status = begin(h, given, false, request);
    mc_unlock(h);
    return status;
}

int mc_init(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request)
{
    const int status = check_init(h, request);
    return status ? mc_init_refuse(h, mc_call_exchanges(given), status)
                  : mc_request_init(h, given, false, request);
}

/* Nobody has the sum before everybody has given. Whatever is forced for allreduce, it is the planner's
 * cheapest sum of one element. */
static meshcoll_args_t barrier_of(meshcoll_t *h)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = MESHCOLL_ALLREDUCE,
                             .in = &h->arrived,
                             .out = &h->arrived,
                             .count = 1,
                             .datatype = MESHCOLL_INT32};
}

int meshcoll_barrier(meshcoll_t *mesh)
{
    if (!mesh)
        return no_mesh();
    const meshcoll_args_t a = barrier_of(mesh);
    mc_lock(mesh);
    const int status = run(mesh, &a, true);
    mc_unlock(mesh);
    return status;
}

int meshcoll_ibarrier(meshcoll_t *mesh, meshcoll_request_t **request)
{
    int status = check_begin(mesh, request);
    if (status)
        return mc_call_refuse(mesh, false, status);
    const meshcoll_args_t a = barrier_of(mesh);
    mc_lock(mesh);
    status = begin(mesh, &a, true, request);
    mc_unlock(mesh);
    return status;
}

int meshcoll_barrier_init(meshcoll_t *mesh, meshcoll_request_t **request)
{
    const int status = check_init(mesh, request);
    if (status)
        return mc_init_refuse(mesh, false, status);
    const meshcoll_args_t a = barrier_of(mesh);
    return mc_request_init(mesh, &a, true, request);
}
