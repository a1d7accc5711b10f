#include "runtime/progress/busy.h"

#include "runtime/handle/run.h"

_Thread_local mc_job_t *mc_busy;

void mc_busy_leave(mc_job_t *job)
{
    mc_job_t **at = &mc_busy;
    while (*at && *at != job)
        at = &(*at)->requests.next;
    if (*at)
        *at = job->requests.next;
}

void mc_busy_enlist(mc_job_t *job, meshcoll_request_t *r)
{
    const mc_run_t *const run = mc_run_of(r);
    if (!job->requests.running.first && !job->threads) {
        job->requests.next = mc_busy;
        mc_busy = job;
    }
    r->watched.looked = 0;
    mc_list_append(&job->requests.running, &r->in_flight);
    if (!run || run->executor.state != MC_RUNNING || mc_executor_has_work(&run->executor))
        mc_busy_await(job, r, &job->requests.ready);
}

void mc_busy_unlist(meshcoll_request_t *r)
{
    mc_list_remove(&r->in_flight);
    mc_list_remove(&r->ready.node);
}

static mc_run_t *waiting_run(const mc_list_node_t *n)
{
    return mc_run_of(mc_request_ready(n));
}

/* Mostly as the last: what waits for most has come last. */
static void enter_by_awaited(mc_list_t *list, mc_run_t *r)
{
    const uint32_t awaited = r->executor.awaited;
    mc_list_node_t *before = list->last;
    while (before && (int32_t)(waiting_run(before)->executor.awaited - awaited) > 0)
        before = before->before;
    mc_list_insert(list, before, &r->head.ready.node);
}

static void await_run(mc_job_t *job, mc_run_t *r, mc_list_t *polled)
{
    const mc_executor_t *const x = &r->executor;
    mc_list_node_t *const node = &r->head.ready.node;
    if (x->state == MC_FLUSHING || mc_executor_has_work(x))
        mc_list_append(polled, node);
    else if (x->state == MC_PENDING && !mc_executor_has_reached(x))
        enter_by_awaited(x->reaching, r);
    else if (x->state == MC_PENDING && x->bound && !x->held)
        mc_list_append(&job->requests.connecting, node);
}

void mc_busy_await(mc_job_t *job, meshcoll_request_t *r, mc_list_t *polled)
{
    if (r->ready.node.in)
        return;
    if (r->kind->is_run)
        await_run(job, mc_run_of(r), polled);
    else if (r->kind->advance)
        mc_list_append(polled, &r->ready.node);
}

void mc_busy_reached(const mc_list_t *waiting)
{
    while (waiting->first && mc_executor_has_reached(&waiting_run(waiting->first)->executor))
        mc_ready_mark(&mc_request_ready(waiting->first)->ready);
}

void mc_busy_connected(mc_job_t *job)
{
    while (job->requests.connecting.first)
        mc_list_move(&job->requests.ready, job->requests.connecting.first);
}
