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

void mc_handle_tell(meshcoll_t *h)
{
    h = h->root;
    for (int32_t i = 0; i < h->n_polled; i++)
        if (h->polled[i]->ops->tell)
            h->polled[i]->ops->tell(h->polled[i]);
}

uint32_t mc_handle_look(meshcoll_t *h)
{
    uint32_t n = 0;
    h = h->root;
    for (int32_t i = 0; i < h->n_polled; i++)
        n += h->polled[i]->ops->progress(h->polled[i]);
    if (h->move_messages)
        n += h->move_messages(h);
    if (!h->running)
        return n;
    const uint32_t awake = mc_wait_polls(h) + mc_wait_yields(h);
    for (meshcoll_request_t **at = &h->running; *at;) {
        meshcoll_request_t *const r = *at;
        n += advance(r, h->running->next, awake, n);
        if (r->status == MESHCOLL_IN_PROGRESS) {
            at = &r->next;
        } else {
            *at = r->next;
            h->ended(r);
            if (h->broken)
                break; /* nothing runs any more */
        }
    }
    mc_handle_tell(h);
    if (!h->running && !h->threads)
        mc_busy_leave(h);
    return n;
}

/* Progresses a handle from the process's list; 0 where another thread holds its lock. */
static uint32_t look_at_listed(meshcoll_t *h)
{
    uint32_t n = 0;
    if (pthread_mutex_trylock(&h->threads->lock))
        return 0; /* another thread progresses it */
    if (h->running) {
        n = mc_handle_look(h);
        if (n > 0)
            mc_threads_wake(h->threads);
    }
    mc_threads_unlock(h->threads);
    return n;
}

uint32_t mc_handle_progress(meshcoll_t *h)
{
    h = h->root;
    uint32_t n = mc_handle_look(h);
    if (n > 0 && h->threads)
        mc_threads_wake(h->threads);
    for (meshcoll_t *other = mc_busy, *next; other; other = next) {
        next = other->next_busy;
        if (other != h)
            n += mc_handle_look(other);
    }
    return mc_threads_others_run(h) ? n + mc_threads_each_other(h, look_at_listed) : n;
}

void mc_handle_check_peers(meshcoll_t *h)
{
    h = h->root;
    mc_failure_look(h);
    for (meshcoll_t *other = mc_busy, *next; other; other = next) {
        next = other->next_busy;
        if (other != h)
            mc_failure_look(other);
    }
}

bool mc_handle_others_run(const meshcoll_t *h)
{
    return mc_busy && (mc_busy != h->root || mc_busy->next_busy);
}

void mc_sleep_watch(mc_sleep_t *s, const meshcoll_t *h)
{
    h = h->root;
    for (int32_t i = 0; i < h->n_polled && !s->ready; i++) {
        mc_transport_t *const t = h->polled[i];
        if (t->fd < 0 || s->n == MC_SLEEP_FDS)
            s->blind = true;
        else
            s->fd[s->n++] = (struct pollfd){.fd = t->fd, .events = POLLIN};
        s->ready = t->ops->arm(t) == MESHCOLL_IN_PROGRESS && t->fd >= 0;
    }
}

void mc_sleep_watch_busy(mc_sleep_t *s, const meshcoll_t *h)
{
    for (const meshcoll_t *other = mc_busy; other; other = other->next_busy)
        if (other != h->root)
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

bool mc_handle_sleep(meshcoll_t *h, bool blind, int most_ms)
{
    mc_sleep_t s;
    s.n = 0;
    s.blind = mc_threads_others_run(h);
    s.ready = false;
    if (blind)
        return sleep_blindly();
    mc_sleep_watch(&s, h);
    mc_sleep_watch_busy(&s, h);
    return mc_sleep(&s, most_ms);
}

void mc_wait_idle(meshcoll_t *h, mc_waiting_t *w)
{
    const uint32_t looks = mc_wait_polls(h), awake = looks + mc_wait_yields(h);
    const bool due = w->idle > awake || w->idle % MC_HOOK_YIELDS == 0;
    if (h->hook.function && due && mc_hook_run(h)) {
        w->idle = looks;
    } else if (w->idle > awake) {
        w->in_vain = mc_handle_sleep(h, w->in_vain, mc_wait_sleep_ms(h, w->idle - awake));
        mc_handle_check_peers(h);
    } else {
        sched_yield();
    }
    if (mc_callbacks_are_due()) /* after a failure, or of what the hook has begun */
        mc_callbacks_run();
}
