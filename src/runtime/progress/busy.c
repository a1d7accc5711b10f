#include "runtime/progress/busy.h"

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
    const mc_executor_t *const x = &r->executor;
    if (!job->requests.running.first && !job->threads) {
        job->requests.next = mc_busy;
        mc_busy = job;
    }
    r->watched.looked = 0;
    mc_list_append(&job->requests.running, &r->in_flight);
    if (x->state != MC_RUNNING || mc_executor_has_work(x))
        mc_busy_await(job, r, &job->requests.ready);
}

void mc_busy_unlist(meshcoll_request_t *r)
{
    mc_list_remove(&r->in_flight);
    mc_list_remove(&r->ready.node);
}

/* Mostly as the last: what waits for most has come last. */
static void enter_by_awaited(mc_list_t *list, meshcoll_request_t *r)
{
    const uint32_t awaited = r->executor.awaited;
    mc_list_node_t *before = list->last;
    while (before && (int32_t)(mc_request_ready(before)->executor.awaited - awaited) > 0)
        before = before->before;
    mc_list_insert(list, before, &r->ready.node);
}

void mc_busy_await(mc_job_t *job, meshcoll_request_t *r, mc_list_t *polled)
{
    const mc_executor_t *const x = &r->executor;
    if (r->ready.node.in)
        return;
    if (r->kind->advance || x->state == MC_FLUSHING || mc_executor_has_work(x))
        mc_list_append(polled, &r->ready.node);
    else if (x->state == MC_PENDING && !mc_executor_has_reached(x))
        enter_by_awaited(x->reaching, r);
    else if (x->state == MC_PENDING && x->bound && !x->held)
        mc_list_append(&job->requests.connecting, &r->ready.node);
}

void mc_busy_reached(const mc_list_t *waiting)
{
    for (meshcoll_request_t *r;
         (r = mc_request_ready(waiting->first)) && mc_executor_has_reached(&r->executor);)
        mc_ready_mark(&r->ready);
}

void mc_busy_connected(mc_job_t *job)
{
    while (job->requests.connecting.first)
        mc_list_move(&job->requests.ready, job->requests.connecting.first);
}
