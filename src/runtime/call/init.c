#include "runtime/call/init.h"

#include "runtime/call/choose_call.h"
#include "runtime/call/passing.h"
#include "runtime/handle/args.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/threads.h"
#include "runtime/request/huge.h"
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

/* The operation numbers of a persistent request: of its runs, and of an alltoallv's counts. */
typedef struct {
    uint32_t runs, counts;
} numbers_t;

static int init(meshcoll_t *h, const meshcoll_args_t *a, bool is_barrier, numbers_t number,
                meshcoll_request_t **request)
{
    mc_memory_t *choice;
    meshcoll_request_t *r;
    int status = mc_call_choose(h, a, is_barrier, &choice);
    if (status)
        return status;
    const mc_ranked_t best = choice->best;
    status = mc_request_create(h, a, &best, &r);
    if (status)
        return status;
    r->persistent = true;
    r->operation = number.runs;
    r->workspace = &r->own;
    status = bind(r, a, number.counts);
    if (status) {
        mc_request_drop(r);
        return status;
    }
    *request = r;
    return MESHCOLL_OK;
}

int mc_request_init(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier,
                    meshcoll_request_t **request)
{
    meshcoll_args_t a;
    mc_lock(h);
    /* taken also where the call is refused, so that the next one's is the same on all ranks */
    const numbers_t number = {mc_next_persistent(h),
                              mc_call_exchanges(given) ? mc_next_call(h) : 0};
    int status = mc_failure_check(h);
    if (status)
        return mc_leave(h, status);
    status = mc_args_check(h, given, &a);
    if (!status)
        status = init(h, &a, is_barrier, number, request);
    if (status)
        status = mc_failure_refused(h, number.runs, true, status);
    return mc_leave(h, status);
}
