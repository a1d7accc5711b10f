#include "runtime/call/init.h"

#include "runtime/check/kinds.h"
#include "runtime/check/passing.h"
#include "runtime/handle/args.h"
#include "runtime/handle/digest.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/threads.h"
#include "runtime/request/cache.h"
#include "runtime/request/huge.h"
#include "runtime/request/leads.h"
#include "runtime/request/numbers.h"
#include "runtime/request/request.h"

static int bind(meshcoll_request_t *r, const meshcoll_args_t *a, uint32_t counts)
{
    mc_operands_t operands = mc_operands_of(a);
    if (!r->plan)
        return MESHCOLL_OK;
    if (a->in_counts)
        return mc_passing_bind(r, a, counts);
    int status = mc_args_own_counts(r->mesh, a, &operands);
    if (!status)
        status = mc_request_bind(r, &operands);
    if (!status)
        mc_huge_pages(&r->executor);
    return status;
}

/* Of a call that is refused before it is compared. */
static int refuse(meshcoll_t *h, mc_numbers_t number, int status)
{
    return mc_call_refused(h, &(mc_refused_t){number, true, false}, status);
}

int mc_init_checked(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t **request)
{
    const meshcoll_args_t *const a = &asked->args;
    const bool is_barrier = asked->is_barrier;
    const mc_numbers_t number = asked->number;
    mc_ranked_t best;
    meshcoll_request_t *r;
    int status = mc_cache_choose(h, a, is_barrier, &best);
    if (status)
        return refuse(h, number, status);
    const mc_description_t call = {
        .args = a, .strategy = &best.strategy, .number = number.own, .is_barrier = is_barrier};
    h->making = &call;
    status = mc_request_create(h, a, &best, &r);
    h->making = NULL;
    if (status)
        return refuse(h, number, status);
    r->persistent = true;
    r->operation = number.own;
    mc_request_sign(r, mc_digest_of(h, a, is_barrier));
    r->workspace = &r->own;
    status = mc_lead_persistent(r, a);
    if (!status && h->hooks.compare)
        status = h->hooks.compare(r, &call, number.check);
    if (!status && !r->why)
        status = bind(r, a, number.counts);
    if (status) {
        status = mc_lead_refused(h, number.own, true, status);
        mc_request_drop(r);
        return status;
    }
    *request = r;
    return MESHCOLL_OK;
}

/* With buffers of either kind. */
static int init_any(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t **request)
{
    mc_call_memory_t memory;
    const int status = mc_call_memory(h, &asked->args, &memory);
    if (status)
        return refuse(h, asked->number, status);
    if (memory.on_device && asked->args.count > 0)
        return h->job->device->init(h, asked, &memory.buffer, request);
    return mc_init_checked(h, asked, request);
}

/* Numbers wrap; two requests with one number would take each other's messages. */
static int check_number(const meshcoll_t *h, uint32_t number)
{
    const meshcoll_request_t *r = h->n_persistent > MC_PERSISTENT_NUMBERS ? h->all : NULL;
    while (r && !(r->persistent && r->operation == number))
        r = r->next_of_all;
    return r ? mc_fail(
                   MESHCOLL_ERR_UNSUPPORTED,
                   "a persistent request that was made %d such requests ago still exists: expected "
                   "it to be free, as its number comes again; free it first",
                   MC_PERSISTENT_NUMBERS)
             : MESHCOLL_OK;
}

int mc_request_init(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier,
                    meshcoll_request_t **request)
{
    mc_asked_t asked = {.is_barrier = is_barrier};
    mc_lock(h);
    /* taken also where the call is refused, so that the next one's is the same on all ranks */
    asked.number = mc_take_numbers(h, true, mc_call_exchanges(given));
    int status = mc_failure_check(h);
    if (status)
        return mc_leave(h, status);
    status = check_number(h, asked.number.own);
    if (!status)
        status = mc_args_check(h, given, &asked.args);
    status = status ? refuse(h, asked.number, status) : init_any(h, &asked, request);
    return mc_leave(h, status);
}
