/* Progresses running requests, and sleeps until a transport has events. */
#include "runtime/progress/progress.h"

#include "runtime/handle/run.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/flush.h"
#include "runtime/progress/threads.h"

#include <sched.h>
#include <time.h>

enum { BLIND_SLEEP_NS = 50 * 1000 };

/* Else it has waited at this poll. */
static bool is_at_work(const meshcoll_request_t *r)
{
    return r->kind->is_run && ((const mc_run_t *)r)->executor.state == MC_RUNNING;
}

void mc_job_wake_peers(mc_job_t *job)
{
    for (int32_t i = 0; i < job->connections.n_polled; i++)
        if (job->connections.polled[i]->ops->wake)
            job->connections.polled[i]->ops->wake(job->connections.polled[i]);
}

/* Those to advance at each poll join the list again for the next one. */
static uint32_t advance_ready(mc_job_t *job, uint32_t events)
{
    mc_list_t again = {0};
    uint32_t n = 0;
    for (meshcoll_request_t *r; (r = mc_request_ready(job->requests.ready.first));) {
        mc_list_remove(&r->ready.node);
        if (!r->in_flight.in)
            continue;
        if (r->kind->advance)
            r->status = r->kind->advance(r, events + n);
        if (r->status == MESHCOLL_IN_PROGRESS) {
            n += is_at_work(r);
            mc_busy_await(job, r, &again);
        } else {
            n++;
            mc_busy_unlist(r);
            mc_request_end(r); /* if the mesh fails, nothing runs any more */
        }
    }
    while (again.first)
        mc_list_move(&job->requests.ready, again.first);
    mc_job_wake_peers(job);
    if (!job->requests.running.first && !job->threads)
        mc_busy_leave(job);
    return n;
}

uint32_t mc_job_poll_all(mc_job_t *job)
{
    uint32_t n = 0;
    for (int32_t i = 0; i < job->connections.n_polled; i++)
        n += job->connections.polled[i]->ops->progress(job->connections.polled[i]);
    if (job->move_messages)
        n += job->move_messages(job);
    if (job->connections.n_flushing > 0)
        mc_flush_poll(job);
    return job->requests.ready.first ? n + advance_ready(job, n) : n;
}

/* Progresses a job from the process's list; 0 where another thread holds its lock. */
static uint32_t look_at_listed(mc_job_t *job)
{
    uint32_t n = 0;
    if (pthread_mutex_trylock(&job->threads->lock))
        return 0; /* another thread progresses it */
    if (job->requests.running.first) {
        n = mc_job_poll_all(job);
        if (n > 0)
            mc_threads_wake(job->threads);
    }
    mc_threads_unlock(job->threads);
    return n;
}

uint32_t mc_job_progress(mc_job_t *job)
{
    uint32_t n = mc_job_poll_all(job);
    if (n > 0 && job->threads)
        mc_threads_wake(job->threads);
    for (mc_job_t *other = mc_busy, *next; other; other = next) {
        next = other->requests.next;
        if (other != job)
            n += mc_job_poll_all(other);
    }
    return mc_threads_others_run(job) ? n + mc_threads_each_other(job, look_at_listed) : n;
}

void mc_job_check_peers(mc_job_t *job)
{
    mc_failure_poll(job);
    for (mc_job_t *other = mc_busy, *next; other; other = next) {
        next = other->requests.next;
        if (other != job)
            mc_failure_poll(other);
    }
}

/* Nothing came. */
static void yield_core(const meshcoll_t *h)
{
    mc_job_check_peers(h->job);
    if (!h->job->oversubscribed)
        return;
    mc_unlock(h);
    sched_yield();
    mc_lock(h);
}

void mc_test_turn(meshcoll_t *h)
{
    if (mc_job_progress(h->job) == 0)
        yield_core(h);
}

bool mc_job_others_run(const mc_job_t *job)
{
    return mc_busy && (mc_busy != job || mc_busy->requests.next);
}

void mc_sleep_watch(mc_sleep_t *s, const mc_job_t *job)
{
    for (int32_t i = 0; i < job->connections.n_polled && !s->ready; i++) {
        mc_transport_t *const t = job->connections.polled[i];
        if (t->fd < 0 || s->n == MC_SLEEP_FDS)
            s->blind = true;
        else
            s->fd[s->n++] = (struct pollfd){.fd = t->fd, .events = POLLIN};
        s->ready = t->ops->arm(t) == MESHCOLL_IN_PROGRESS && t->fd >= 0;
    }
}

void mc_sleep_watch_busy(mc_sleep_t *s, const mc_job_t *job)
{
    for (const mc_job_t *other = mc_busy; other; other = other->requests.next)
        if (other != job)
            mc_sleep_watch(s, other);
}

static bool sleep_blindly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = BLIND_SLEEP_NS}, NULL);
    return false;
}

bool mc_sleep(mc_sleep_t *s, int most_ms)
{
    if (s->ready)
        return true;
    if (s->blind || s->n == 0)
        return sleep_blindly();
    return poll(s->fd, s->n, most_ms) > 0;
}

bool mc_job_sleep(mc_job_t *job, bool blind, int most_ms)
{
    mc_sleep_t s;
    s.n = 0;
    s.blind = mc_threads_others_run(job);
    s.ready = false;
    if (blind)
        return sleep_blindly();
    mc_sleep_watch(&s, job);
    mc_sleep_watch_busy(&s, job);
    return mc_sleep(&s, most_ms);
}

void mc_wait_idle(meshcoll_t *h, mc_waiting_t *w)
{
    const uint32_t looks = mc_wait_polls(h->job), awake = looks + mc_wait_yields(h->job);
    const bool due = mc_wait_is_due(w->idle, awake);
    if (h->hook.function && due && mc_hook_run(h)) {
        w->idle = looks;
    } else if (w->idle > awake) {
        w->in_vain = mc_job_sleep(h->job, w->in_vain, mc_wait_sleep_ms(h, w->idle - awake));
    } else {
        sched_yield();
    }
    if (due)
        mc_job_check_peers(h->job);
    if (mc_callbacks_are_due()) /* after a failure, or of what the hook has begun */
        mc_callbacks_run();
}
