#include "runtime/call/call.h"

#include "runtime/call/adapt.h"
#include "runtime/call/cache.h"
#include "runtime/handle/digest.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/request/args.h"
#include "runtime/request/leads.h"
#include "runtime/request/numbers.h"
#include "runtime/request/request.h"

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

/* A call that is not known: takes its number, checks its arguments and starts it. A call that fails here has taken its
 * number, so that the next call has the same number on all ranks. `waits`: it may be on device memory, and has come to
 * its end then; so has one of no elements. *request stays as it is there. */
static int start_anew(meshcoll_t *h, const meshcoll_args_t *given, bool waits,
                      meshcoll_request_t **request)
{
    mc_call_args_t asked = {
        .is_barrier = is_barrier(h, given), .is_nonblocking = !waits, .given = given};
    mc_call_memory_t memory;
    asked.number = mc_take_numbers(h, false, mc_call_exchanges(given));
    int status = mc_failure_check(h);
    if (status)
        return status;
    status = mc_args_check(h, given, &asked.args);
    if (!status && waits)
        status = mc_call_memory(h, &asked.args, &memory);
    else if (!status)
        status = mc_call_memory_refuse(h, &asked.args, "a nonblocking call");
    if (status)
        return mc_call_refused(h, &(mc_refused_t){asked.number, false, waits}, status);
    if (waits && asked.args.count == 0 && !h->hooks->compare) {
        mc_lead_count_call(h, MC_LEAD_LEAST, asked.number.own, mc_digest_of(h, &asked.args, false),
                           NULL);
        return MESHCOLL_OK;
    }
    return waits && memory.on_device ? h->job->device->run(h, &asked, &memory.buffer)
                                     : mc_call_start(h, &asked, request);
}

/* It takes its number as any refused call does. */
static int refuse_in_callback(meshcoll_t *h, const meshcoll_args_t *given)
{
    const mc_numbers_t number = mc_take_numbers(h, false, mc_call_exchanges(given));
    return mc_call_refused(h, &(mc_refused_t){number, false, false}, MESHCOLL_ERR_INVALID_ARG);
}

static inline __attribute__((always_inline)) int run_now(meshcoll_t *h,
                                                         const meshcoll_args_t *given)
{
    mc_cached_t *const bound = find_bound(h, given, true);
    meshcoll_request_t *r = NULL;
    const int status =
        bound ? mc_call_start_bound(h, bound, given, &r) : start_anew(h, given, true, &r);
    return status || !r ? status : mc_request_complete(r);
}

/* A call in a group or a callback, or while another thread is in a callback. */
__attribute__((noinline)) static int run_special(meshcoll_t *h, const meshcoll_args_t *given)
{
    if (mc_callback_check("a blocking call"))
        return refuse_in_callback(h, given);
    return mc_group_is_open(h) ? mc_group_add(h, given, is_barrier(h, given)) : run_now(h, given);
}

static int begin(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request)
{
    if (h->n_restricted > 0 && mc_group_is_open(h)) {
        /* the call completes at the group's end */
        *request = NULL;
        return mc_group_add(h, given, is_barrier(h, given));
    }
    mc_cached_t *const bound = find_bound(h, given, false);
    return bound ? mc_call_start_bound(h, bound, given, request)
                 : start_anew(h, given, false, request);
}

/* With buffers of either kind. */
static int init_checked(meshcoll_t *h, const mc_call_args_t *asked, meshcoll_request_t **request)
{
    mc_call_memory_t memory;
    const int status = mc_call_memory(h, &asked->args, &memory);
    if (status)
        return mc_call_refused(h, &(mc_refused_t){asked->number, true, false}, status);
    if (memory.on_device && asked->args.count > 0)
        return h->job->device->init(h, asked, &memory.buffer, request);
    return mc_call_persist(h, asked, &mc_persistent_kind, request);
}

/* Numbers wrap; two requests with one number would take each other's messages. */
static int check_number(const meshcoll_t *h, uint32_t number)
{
    const mc_list_node_t *n =
        h->calls.n_persistent > MC_PERSISTENT_NUMBERS ? h->requests.first : NULL;
    while (n && !(mc_request_of_mesh(n)->persistent && mc_request_of_mesh(n)->number == number))
        n = n->next;
    return n ? mc_fail(
                   MESHCOLL_ERR_UNSUPPORTED,
                   "a persistent request that was made %d such requests ago still exists: expected "
                   "it to be free, as its number comes again; free it first",
                   MC_PERSISTENT_NUMBERS)
             : MESHCOLL_OK;
}

static int init(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request)
{
    mc_call_args_t asked = {.is_barrier = is_barrier(h, given)};
    /* taken also where the call is refused, so that the next one's is the same on all ranks */
    asked.number = mc_take_numbers(h, true, mc_call_exchanges(given));
    int status = mc_failure_check(h);
    if (status)
        return status;
    status = check_number(h, asked.number.own);
    if (!status)
        status = mc_args_check(h, given, &asked.args);
    return status ? mc_call_refused(h, &(mc_refused_t){asked.number, true, false}, status)
                  : init_checked(h, &asked, request);
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

static int refuse(meshcoll_t *h, bool is_persistent, bool exchanges, int status)
{
    if (!h)
        return status;
    mc_lock(h);
    const mc_numbers_t number = mc_take_numbers(h, is_persistent, exchanges);
    if (mc_group_is_open(h) && !is_persistent)
        status = mc_group_refuse(h, number.own, status);
    else
        status = mc_call_refused(h, &(mc_refused_t){number, is_persistent, false}, status);
    return mc_leave(h, status);
}

int mc_call_refuse(meshcoll_t *h, bool exchanges, int status)
{
    return refuse(h, false, exchanges, status);
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
        return mc_call_refuse(h, mc_call_exchanges(given), status);
    mc_lock(h);
    return mc_leave(h, begin(h, given, request));
}

int mc_init(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request)
{
    if (!h)
        return no_mesh();
    const int status = check_place(given, request, "meshcoll_init", "a persistent operation");
    if (status)
        return refuse(h, true, mc_call_exchanges(given), status);
    mc_lock(h);
    return mc_leave(h, init(h, given, request));
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
