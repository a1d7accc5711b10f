#include "runtime/progress/busy.h"

#include "runtime/handle/request.h"
#include "runtime/progress/threads.h"

_Thread_local mc_shared_t *mc_busy;

void mc_busy_leave(mc_shared_t *job)
{
    mc_shared_t **at = &mc_busy;
    while (*at && *at != job)
        at = &(*at)->next_busy;
    if (*at)
        *at = job->next_busy;
}

static void enlist_job(mc_shared_t *job)
{
    if (!job->running && !job->threads) {
        job->next_busy = mc_busy;
        mc_busy = job;
    }
}

void mc_busy_enlist(meshcoll_t *h, meshcoll_request_t *r)
{
    mc_shared_t *const job = h->job;
    meshcoll_request_t **at = &job->running;
    if (r->plan)
        job->pipelined = r->plan->layout.segments > r->plan->layout.sides;
    enlist_job(job);
    while (*at)
        at = &(*at)->next;
    r->next = NULL;
    r->watched.looked = 0;
    *at = r;
}

void mc_busy_enlist_first(mc_shared_t *job, meshcoll_request_t *r)
{
    enlist_job(job);
    r->next = job->running;
    job->running = r;
    if (job->threads)
        mc_threads_wake(job->threads);
}
