#include "runtime/progress/flush.h"

#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"

enum { SLEEPS = 4 };

static bool may_give_up(const meshcoll_request_t *r)
{
    const mc_list_node_t *const first = r->mesh->job->requests.running.first;
    const bool is_message = !r->kind->advance;
    return is_message || (first && (first != &r->in_flight || first->next));
}

/* Begins the flush of a transport that all wait for who have asked so far. */
static int begin(mc_job_t *job, int32_t i)
{
    mc_flushing_t *const s = &job->connections.flushing[i];
    const int status = job->connections.polled[i]->ops->flush(job->connections.polled[i]);
    s->begun = s->asked;
    s->in_flight = status == MESHCOLL_IN_PROGRESS;
    s->given_up = false;
    if (status == MESHCOLL_OK)
        s->done = s->begun;
    job->connections.n_flushing += s->in_flight;
    return status < 0 ? status : MESHCOLL_OK;
}

/* No longer waits for transport i. */
static inline void leave(mc_flush_t *f, int32_t i)
{
    f->transports &= ~(UINT32_C(1) << i);
}

static bool awaits(const mc_flush_t *f, int32_t i)
{
    return f->transports >> i & 1;
}

static bool is_done(const mc_flushing_t *s, const mc_flush_t *f)
{
    return s->done >= f->number;
}

int mc_flush_begin(const meshcoll_request_t *r, uint32_t transports, mc_flush_t *f)
{
    mc_job_t *const job = r->mesh->job;
    int status = MESHCOLL_OK;
    *f = (mc_flush_t){.transports = transports, .number = ++job->connections.n_flushes};
    for (int32_t i = 0; i < job->connections.n_polled && !status; i++) {
        mc_flushing_t *const s = &job->connections.flushing[i];
        if (!awaits(f, i))
            continue;
        s->asked = f->number;
        if (!s->in_flight)
            status = begin(job, i);
        if (is_done(s, f) || (s->given_up && may_give_up(r)))
            leave(f, i);
    }
    return status ? status : f->transports ? MESHCOLL_IN_PROGRESS : MESHCOLL_OK;
}

int mc_flush_check(const meshcoll_request_t *r, mc_flush_t *f, uint32_t events)
{
    mc_job_t *const job = r->mesh->job;
    const bool may = may_give_up(r);
    f->idle += may && events == 0;
    const bool gives_up = may && f->idle > mc_wait_polls(job) + mc_wait_yields(job) + SLEEPS;
    for (int32_t i = 0; i < job->connections.n_polled; i++) {
        mc_flushing_t *const s = &job->connections.flushing[i];
        if (!awaits(f, i) || !(is_done(s, f) || gives_up))
            continue;
        s->given_up = s->given_up || !is_done(s, f);
        leave(f, i);
    }
    return f->transports ? MESHCOLL_IN_PROGRESS : MESHCOLL_OK;
}

static int look(mc_job_t *job, int32_t i)
{
    mc_flushing_t *const s = &job->connections.flushing[i];
    const int status = job->connections.polled[i]->ops->flushed(job->connections.polled[i]);
    if (status == MESHCOLL_IN_PROGRESS)
        return status;
    s->in_flight = false;
    s->done = s->begun;
    job->connections.n_flushing--;
    return status || s->asked == s->begun ? status : begin(job, i);
}

void mc_flush_poll(mc_job_t *job)
{
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < job->connections.n_polled && status >= 0; i++)
        if (job->connections.flushing[i].in_flight)
            status = look(job, i);
    if (status < 0)
        mc_failure_end(job, status);
}
