#include "runtime/progress/differ.h"

#include "runtime/handle/request.h"
#include "runtime/waits/describe.h"

/* Of the runs in flight: a search goes through all messages that have come early. */
enum { OLDEST = 8 };

static int fail_differs(const mc_shared_t *job, const meshcoll_request_t *r, uint64_t other)
{
    char own[MC_WAIT_SHORT_TEXT];
    mc_text_t text = mc_text(own, sizeof own);
    mc_wait_t wait;
    mc_wait_describe(r, &wait);
    mc_wait_print_call(&wait, &text);
    return mc_fail(
        MESHCOLL_ERR_MISMATCH,
        "rank %d has made another call than rank %d, whose is %s: its collective, datatype, "
        "operation or root differs; all ranks must make the same calls in the same order "
        "(MESHCOLL_CHECK=1 tells both)",
        (int)mc_comm_rank_of(&job->order, mc_tag_source(other)),
        (int)mc_comm_rank_of(&job->order, job->rank), own);
}

static bool finds_other(const mc_shared_t *job, const meshcoll_request_t *r, uint64_t *other)
{
    const mc_executor_t *const x = &r->executor;
    const uint64_t tag = mc_tag(0, r->operation, x->digest) | mc_tag_context(r->mesh->context);
    bool found = false;
    for (int32_t i = 0; i < job->n_polled && !found; i++)
        found = job->polled[i]->ops->differs &&
                job->polled[i]->ops->differs(job->polled[i], tag, other);
    return found;
}

int mc_differ_check(const mc_shared_t *job)
{
    uint64_t other;
    uint32_t n = 0;
    for (const meshcoll_request_t *r = mc_request_in_flight(job->running.first); r && n < OLDEST;
         r = mc_request_next(r)) {
        if (!r->plan || r->executor.state != MC_RUNNING)
            continue;
        if (finds_other(job, r, &other))
            return fail_differs(job, r, other);
        n++;
    }
    return MESHCOLL_OK;
}
