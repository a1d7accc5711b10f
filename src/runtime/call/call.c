/*
 * The way of a call, from the public functions below. One look into the cache (cache.h) tells whether the call was made
 * before: then it has a request that is bound to it, and takes a number. Else it goes on in start.c, where it is checked,
 * chooses, and finds a request with its plan and connections in the cache, or makes it, and binds it. Both start the
 * request (request.h), which progress runs until its owner has its status.
 */
#include "runtime/call/call.h"

#include "runtime/call/adapt.h"
#include "runtime/call/args.h"
#include "runtime/call/leads.h"
#include "runtime/call/request.h"
#include "runtime/handle/digest.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"

/* Calls that were made before -------------------------------------------------------------------- */

static inline bool is_barrier(const meshcoll_t *h, const meshcoll_args_t *given)
{
    return given->in == &h->calls.arrived;
}

static inline mc_cached_t *find_bound(meshcoll_t *h, const meshcoll_args_t *a, bool waits)
{
    const uint64_t kind = mc_cache_kind(a, is_barrier(h, a));
    mc_cached_t *const c = kind == MC_KIND_ONCE ? NULL : mc_cache_find(h, a, kind);
    return c && --*c->left == 0 ? mc_adapt_bound(h, c, waits) : c;
}

/* Moves the binding to the call's buffers, and to another workspace. */
__attribute__((noinline)) static int move(mc_cached_t *c, const meshcoll_args_t *given)
{
    mc_run_t *const r = &c->run;
    const int status = r->workspace || r->needs == 0 ? mc_run_move(r, given->in, given->out)
                                                     : MESHCOLL_ERR_NO_MEMORY;
    if (status) { /* the request has no binding then */
        c->kind = MC_KIND_ONCE;
        return mc_lead_refused(r->head.mesh, r->head.number, false, status);
    }
    c->in = given->in;
    c->out = given->out;
    return MESHCOLL_OK;
}

static int start_bound(meshcoll_t *h, mc_cached_t *c, const meshcoll_args_t *given,
                       meshcoll_request_t **request)
{
    mc_run_t *const r = &c->run;
    mc_cache_take(h, c, mc_next_call(h));
    mc_lead_call(h, c->bytes, r->head.number, r->executor.digest, r);
    if (r->needs > 0)
        r->workspace = mc_take_memory(h);
    const bool stays = c->in == given->in && c->out == given->out &&
                       (r->needs == 0 || (r->workspace && mc_run_stays(r)));
    return mc_call_begin(r, stays ? MESHCOLL_OK : move(c, given), request);
}

/* Other calls ------------------------------------------------------------------------------------ */

/* Of a call that `waits`, or is persistent, or neither. One that waits may have come to its end, as on device memory, and
 * where it has no elements: *request stays as it is then. */
__attribute__((noinline)) static int make(meshcoll_t *h, const meshcoll_args_t *given, bool waits,
                                          bool is_persistent, meshcoll_request_t **request)
{
    const char *const host_only = waits || is_persistent ? NULL : "a nonblocking call";
    mc_call_t call = {.given = given, .waits = waits, .is_persistent = is_persistent};
    int status = mc_failure_check(h);
    if (status)
        return status;
    status = mc_call_check(h, given, host_only, &call);
    if (status)
        return mc_call_refused(h, &call, status);
    if (call.on_device)
        return is_persistent ? h->job->device->init(h, &call, request)
                             : h->job->device->run(h, &call);
    if (is_persistent)
        return mc_call_persist(h, &call, &mc_persistent_kind, request);
    if (waits && call.args.count == 0 && !h->hooks->compare) {
        mc_lead_call(h, MC_LEAD_LEAST, call.number.own, mc_digest_of(h, &call.args, false), NULL);
        return MESHCOLL_OK;
    }
    return mc_call_start(h, &call, request);
}

/* The public calls ------------------------------------------------------------------------------- */

/* Of a call that is not looked at further. It takes its numbers as any refused call does. `in_group`: the open group
 * fails with it. */
static int refuse(meshcoll_t *h, bool is_persistent, bool exchanges, bool in_group, int status)
{
    const mc_call_t call = {.is_persistent = is_persistent,
                            .number = mc_take_numbers(h, is_persistent, exchanges)};
    return in_group ? mc_group_refuse(h, call.number.own, status)
                    : mc_call_refused(h, &call, status);
}

static inline __attribute__((always_inline)) int run_now(meshcoll_t *h,
                                                         const meshcoll_args_t *given)
{
    mc_cached_t *const bound = find_bound(h, given, true);
    meshcoll_request_t *r = NULL;
    const int status = bound ? start_bound(h, bound, given, &r) : make(h, given, true, false, &r);
    return status || !r ? status : mc_request_complete(r);
}

/* A call in a group or a callback, or while another thread is in a callback. */
__attribute__((noinline)) static int run_special(meshcoll_t *h, const meshcoll_args_t *given)
{
    if (mc_callback_check("a blocking call")) /* a group that happens to be open goes on */
        return refuse(h, false, mc_call_exchanges(given), false, MESHCOLL_ERR_INVALID_ARG);
    return mc_group_is_open(h) ? mc_group_add(h, given) : run_now(h, given);
}

static int begin(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request)
{
    if (h->n_restricted > 0 && mc_group_is_open(h)) {
        /* the call completes at the group's end */
        *request = NULL;
        return mc_group_add(h, given);
    }
    mc_cached_t *const bound = find_bound(h, given, false);
    return bound ? start_bound(h, bound, given, request) : make(h, given, false, false, request);
}

static int no_mesh(void)
{
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "the mesh is NULL");
}

/* `function`: of the arguments; `what` needs a place for its request. */
static int check_place(const meshcoll_args_t *given, meshcoll_request_t *const *request,
                       const char *function, const char *what)
{
    if (!given)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: args is NULL", function);
    return request ? MESHCOLL_OK
                   : mc_fail(MESHCOLL_ERR_INVALID_ARG,
                             "%s needs a pointer to store its request in: it is NULL", what);
}

int mc_call_refuse(meshcoll_t *h, bool is_persistent, bool exchanges, int status)
{
    mc_lock(h);
    const bool in_group = mc_group_is_open(h) && !is_persistent;
    return mc_leave(h, refuse(h, is_persistent, exchanges, in_group, status));
}

int mc_run(meshcoll_t *h, const meshcoll_args_t *given)
{
    if (!h)
        return no_mesh();
    mc_lock(h);
    return mc_leave(h, h->n_restricted > 0 ? run_special(h, given) : run_now(h, given));
}

int mc_begin(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request)
{
    if (!h)
        return no_mesh();
    const int status = check_place(given, request, "meshcoll_begin", "a nonblocking call");
    if (status)
        return mc_call_refuse(h, false, mc_call_exchanges(given), status);
    mc_lock(h);
    return mc_leave(h, begin(h, given, request));
}

int mc_init(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request)
{
    if (!h)
        return no_mesh();
    const int status = check_place(given, request, "meshcoll_init", "a persistent operation");
    if (status)
        return mc_call_refuse(h, true, mc_call_exchanges(given), status);
    mc_lock(h);
    return mc_leave(h, make(h, given, false, true, request));
}

/* A sum of one element: no rank can have it before every rank has contributed. The planner chooses
 * its strategy even where one is forced for allreduce. */
static meshcoll_args_t barrier_of(meshcoll_t *h)
{
    int32_t *const arrived = h ? &h->calls.arrived : NULL;
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = MESHCOLL_ALLREDUCE,
                             .in = arrived,
                             .out = arrived,
                             .count = 1,
                             .datatype = MESHCOLL_INT32};
}

int meshcoll_barrier(meshcoll_t *mesh)
{
    const meshcoll_args_t a = barrier_of(mesh);
    return mc_run(mesh, &a);
}

int meshcoll_ibarrier(meshcoll_t *mesh, meshcoll_request_t **request)
{
    const meshcoll_args_t a = barrier_of(mesh);
    return mc_begin(mesh, &a, request);
}

int meshcoll_barrier_init(meshcoll_t *mesh, meshcoll_request_t **request)
{
    const meshcoll_args_t a = barrier_of(mesh);
    return mc_init(mesh, &a, request);
}
