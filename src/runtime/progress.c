/* Moving on what runs, and sleeping until there is something to move. */
#include "runtime/progress.h"

#include "runtime/failure.h"
#include "runtime/request.h"
#include "runtime/threads.h"

#include <time.h>

enum { BLIND_SLEEP_NS = 50 * 1000 };

/* Handles that run something, started in this thread; those without a lock. */
static _Thread_local meshcoll_t *busy;

void mc_handle_leave(meshcoll_t *h)
{
    meshcoll_t **at = &busy;
    while (*at && *at != h)
        at = &(*at)->next_busy;
    if (*at)
        *at = h->next_busy;
}

void mc_handle_enlist(meshcoll_t *h, meshcoll_request_t *r)
{
    meshcoll_request_t **at = &h->running;
    h->pipelined = r->plan->layout.segments > r->plan->layout.sides;
    if (!*at && !h->threads) {
        h->next_busy = busy;
        busy = h;
    }
    while (*at)
        at = &(*at)->next;
    r->next = NULL;
    *at = r;
}

/* Moves one request on, after a look with so many events; whether anything happened. */
static bool advance(meshcoll_request_t *r, bool shared, uint32_t events)
{
    mc_executor_t *const x = &r->executor;
    const bool has_work = mc_executor_has_work(x);
    x->shared = shared;
    x->looks_awake = mc_wait_looks(r->mesh) + mc_wait_yields(r->mesh);
    if (x->state == MC_FLUSHING)
        x->looks += shared && events == 0;
    else if (!has_work)
        return false;
    r->status = mc_executor_advance(x);
    return has_work || r->status != MESHCOLL_IN_PROGRESS;
}

void mc_handle_tell(meshcoll_t *h)
{
    for (int32_t i = 0; i < h->n_polled; i++)
        if (h->polled[i]->ops->tell)
            h->polled[i]->ops->tell(h->polled[i]);
}

/* A look at a handle's transports and running requests. */
uint32_t mc_handle_look(meshcoll_t *h)
{
    uint32_t n = 0;
    for (int32_t i = 0; i < h->n_polled; i++)
        n += h->polled[i]->ops->progress(h->polled[i]);
    if (!h->running)
        return n;
    for (meshcoll_request_t **at = &h->running; *at;) {
        meshcoll_request_t *const r = *at;
        n += advance(r, h->running->next, n);
        if (r->status == MESHCOLL_IN_PROGRESS) {
            at = &r->next;
        } else {
            *at = r->next;
            mc_request_ended(r);
            if (h->broken)
                break; /* nothing runs any more */
        }
    }
    mc_handle_tell(h);
    if (!h->running && !h->threads)
        mc_handle_leave(h);
    return n;
}

uint32_t mc_handle_progress(meshcoll_t *h)
{
    uint32_t n = mc_handle_look(h);
    if (n > 0 && h->threads)
        mc_threads_wake(h->threads);
    for (meshcoll_t *other = busy, *next; other; other = next) {
        next = other->next_busy;
        if (other != h)
            n += mc_handle_look(other);
    }
    return mc_threads_others_run(h) ? n + mc_threads_look_at_others(h) : n;
}

void mc_handle_check_peers(meshcoll_t *h)
{
    mc_failure_look(h);
    for (meshcoll_t *other = busy, *next; other; other = next) {
        next = other->next_busy;
        if (other != h)
            mc_failure_look(other);
    }
}

bool mc_handle_others_run(const meshcoll_t *h)
{
    return busy && (busy != h || busy->next_busy);
}

void mc_sleep_watch(mc_sleep_t *s, const meshcoll_t *h)
{
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
    for (const meshcoll_t *other = busy; other; other = other->next_busy)
        if (other != h)
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

bool mc_handle_sleep(meshcoll_t *h, bool blind)
{
    mc_sleep_t s;
    s.n = 0;
    s.blind = mc_threads_others_run(h);
    s.ready = false;
    if (blind)
        return sleep_blindly();
    mc_sleep_watch(&s, h);
    mc_sleep_watch_busy(&s, h);
    return mc_sleep(&s, MC_SLEEP_MS);
}
