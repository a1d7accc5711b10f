/* Progresses running requests, and sleeps until a transport has events. */
#include "runtime/progress/progress.h"

#include "runtime/handle/request.h"
#include "runtime/progress/busy.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/threads.h"

#include <sched.h>
#include <time.h>

enum { BLIND_SLEEP_NS = 50 * 1000 };

/* Progresses one request after a poll that returned `events`; returns whether anything happened. */
static bool advance(meshcoll_request_t *r, bool shared, uint32_t awake, uint32_t events)
{
    mc_executor_t *const x = &r->executor;
    const bool has_work = mc_executor_has_work(x);
    x->shared = shared;
    x->polls_awake = awake;
    if (x->state == MC_IDLE) /* a tagged message, which move_messages() completes */
        return false;
    if (x->state != MC_RUNNING) { /* it is pending, or flushes */
        x->idle_polls += shared && events == 0;
        r->status = r->advance ? r->advance(r) : mc_executor_advance(x);
        return has_work || r->status != MESHCOLL_IN_PROGRESS;
    }
    if (has_work)
        r->status = mc_executor_advance(x);
    return has_work;
}

void mc_shared_tell(mc_shared_t *job)
{
    for (int32_t i = 0; i < job->n_polled; i++)
        if (job->polled[i]->ops->tell)
            job->polled[i]->ops->tell(job->polled[i]);
}

uint32_t mc_shared_look(mc_shared_t *job)
{
    uint32_t n = 0;
    for (int32_t i = 0; i < job->n_polled; i++)
        n += job->polled[i]->ops->progress(job->polled[i]);
    if (job->move_messages)
        n += job->move_messages(job);
    if (!job->running)
        return n;
    const uint32_t awake = mc_wait_polls(job) + mc_wait_yields(job);
    for (meshcoll_request_t **at = &job->running; *at;) {
        meshcoll_request_t *const r = *at;
        n += advance(r, job->running->next, awake, n);
        if (r->status == MESHCOLL_IN_PROGRESS) {
            at = &r->next;
        } else {
            *at = r->next;
            job->ended(r);
            if (job->broken)
                break; /* nothing runs any more */
        }
    }
    mc_shared_tell(job);
    if (!job->running && !job->threads)
        mc_busy_leave(job);
    return n;
}

/* Progresses a job from the process's list; 0 where another thread holds its lock. */
static uint32_t look_at_listed(mc_shared_t *job)
{
    uint32_t n = 0;
    if (pthread_mutex_trylock(&job->threads->lock))
        return 0; /* another thread progresses it */
    if (job->running) {
        n = mc_shared_look(job);
        if (n > 0)
            mc_threads_wake(job->threads);
    }
    mc_threads_unlock(job->threads);
    return n;
}

uint32_t mc_shared_progress(mc_shared_t *job)
{
    uint32_t n = mc_shared_look(job);
    if (n > 0 && job->threads)
        mc_threads_wake(job->threads);
    for (mc_shared_t *other = mc_busy, *next; other; other = next) {
        next = other->next_busy;
        if (other != job)
            n += mc_shared_look(other);
    }
    return mc_threads_others_run(job) ? n + mc_threads_each_other(job, look_at_listed) : n;
}

void mc_shared_check_peers(mc_shared_t *job)
{
    mc_failure_look(job);
    for (mc_shared_t *other = mc_busy, *next; other; other = next) {
        next = other->next_busy;
        if (other != job)
            mc_failure_look(other);
    }
}

void mc_handle_check_peers(meshcoll_t *h)
{
    mc_shared_check_peers(h->job);
}

bool mc_shared_others_run(const mc_shared_t *job)
{
    return mc_busy && (mc_busy != job || mc_busy->next_busy);
}

void mc_sleep_watch(mc_sleep_t *s, const mc_shared_t *job)
{
    for (int32_t i = 0; i < job->n_polled && !s->ready; i++) {
        mc_transport_t *const t = job->polled[i];
        if (t->fd < 0 || s->n == MC_SLEEP_FDS)
            s->blind = true;
        else
            s->fd[s->n++] = (struct pollfd){.fd = t->fd, .events = POLLIN};
        s->ready = t->ops->arm(t) == MESHCOLL_IN_PROGRESS && t->fd >= 0;
    }
}

void mc_sleep_watch_busy(mc_sleep_t *s, const mc_shared_t *job)
{
    for (const mc_shared_t *other = mc_busy; other; other = other->next_busy)
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

bool mc_shared_sleep(mc_shared_t *job, bool blind, int most_ms)
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
    const bool due = w->idle > awake || w->idle % MC_HOOK_YIELDS == 0;
    if (h->hook.function && due && mc_hook_run(h)) {
        w->idle = looks;
    } else if (w->idle > awake) {
        w->in_vain = mc_shared_sleep(h->job, w->in_vain, mc_wait_sleep_ms(h, w->idle - awake));
        mc_handle_check_peers(h);
    } else {
        sched_yield();
    }
    if (mc_callbacks_are_due()) /* after a failure, or of what the hook has begun */
        mc_callbacks_run();
}
