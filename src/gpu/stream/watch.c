#include "gpu/stream/stream.h"

#include "base/system/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* POLL_US: how late a failure or a limit may be seen; a thread that wakes so often takes no time.
 * OPEN_US: until the next wait of a stream that moves on is ended. */
enum { POLL_US = 10000, OPEN_US = 100 };

struct mc_stream_watch {
    mc_stream_watched_t on;
    _Atomic int64_t limit_ms;
    bool lingers;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wakes;
    bool stops;
};

/* Looking --------------------------------------------------------------------------------------- */

/* Since when it has not moved, and from where. */
typedef struct {
    double since;
    uint32_t run;
    uint32_t other; /* the state that the last look found of another call; 0: none */
} stand_t;

static uint32_t load(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

static void report(const mc_stream_watched_t *on, uint32_t status, uint32_t digest)
{
    on->report->run = load(&on->place->run);
    on->report->pass = load(&on->place->pass);
    on->report->program = load(&on->place->program) - 1;
    on->report->number = load(&on->place->number);
    on->report->digest = digest;
    __atomic_store_n(&on->report->status, status, __ATOMIC_RELEASE);
}

/* Does the stream wait for the first message of a lane, where one of another call lies? 0, or what that says. Two looks
 * must find the same: the stream may have gone on between the loads of one. */
static uint32_t find_other(const mc_stream_watched_t *on)
{
    const uint32_t word = load(&on->place->word), whose = load(&on->place->whose);
    const uint32_t says = word > 0 && word <= on->n_states ? load(on->state[word - 1]) : 0;
    return says && says < MC_STREAM_EMPTY && says != whose && load(&on->place->word) == word ? says
                                                                                             : 0;
}

static bool differs(const mc_stream_watched_t *on, stand_t *stand)
{
    const uint32_t other = find_other(on);
    const bool found = other && other == stand->other;
    stand->other = other;
    if (found)
        report(on, MC_DEVICE_DIFFERS, mc_stream_digest(other));
    return found;
}

/* Does the stream stand where it stood so long ago? A GPU's write that comes between the two of
 * `moved` is of this moment. */
static bool is_late(mc_stream_watch_t *w, stand_t *stand)
{
    mc_stream_place_t *const place = w->on.place;
    const double now = mc_now();
    const int64_t limit = atomic_load_explicit(&w->limit_ms, memory_order_relaxed);
    const uint32_t program = load(&place->program), run = load(&place->run);
    const bool moved = load(&place->moved);
    if (moved)
        atomic_store_explicit(&place->moved, 0, memory_order_relaxed);
    if (program == 0 || moved || run != stand->run || limit <= 0) {
        stand->since = now;
        stand->run = run;
    }
    if (now - stand->since <= 1e-3 * (double)limit || limit <= 0)
        return false;
    report(&w->on, MC_DEVICE_LATE, 0);
    return true;
}

/* 0, or the notice for the peers. */
static uint32_t find_end(mc_stream_watch_t *w, stand_t *stand)
{
    const uint32_t notice = load(w->on.notice);
    if (notice)
        return notice;
    if (load(w->on.alarm))
        return mc_stream_notice(w->on.rank, false);
    if (differs(&w->on, stand))
        return mc_stream_notice(w->on.rank, false);
    return is_late(w, stand) ? mc_stream_notice(w->on.rank, true) : 0;
}

/* The end --------------------------------------------------------------------------------------- */

static void notify(const mc_stream_watched_t *on, uint32_t what)
{
    uint32_t none = 0;
    (void)atomic_compare_exchange_strong(on->notice, &none, what);
    for (uint32_t i = 0; i < on->n_peers; i++) {
        none = 0;
        (void)atomic_compare_exchange_strong(on->peer[i], &none, what);
    }
}

static void open_all(const mc_stream_watched_t *on)
{
    for (uint32_t i = 0; i < on->n_states; i++)
        atomic_store_explicit(on->state[i], MC_STREAM_OPEN, memory_order_release);
}

/* Waits for so long, or until the watch is to stop; returns whether it is. */
static bool rest(mc_stream_watch_t *w, long microseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 1000 * microseconds;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&w->lock);
    if (!w->stops)
        (void)pthread_cond_timedwait(&w->wakes, &w->lock, &until);
    const bool stops = w->stops;
    pthread_mutex_unlock(&w->lock);
    return stops;
}

/* What peers' streams and this rank's own write closes states again. */
static void hold_open(mc_stream_watch_t *w)
{
    const mc_stream_place_t *const place = w->on.place;
    uint32_t run = load(&place->run);
    for (long us = OPEN_US; !rest(w, us);) {
        open_all(&w->on);
        const uint32_t now = load(&place->run);
        us = now != run ? OPEN_US : 2 * us < POLL_US ? 2 * us : POLL_US;
        run = now;
    }
}

static void *serve(void *argument)
{
    mc_stream_watch_t *const w = argument;
    stand_t stand = {.since = mc_now()};
    uint32_t end = 0;
    while (!end && !rest(w, POLL_US))
        end = find_end(w, &stand);
    if (end) {
        notify(&w->on, end);
        hold_open(w);
    }
    return NULL;
}

/* Opening and closing --------------------------------------------------------------------------- */

static void free_watch(mc_stream_watch_t *w)
{
    pthread_cond_destroy(&w->wakes);
    pthread_mutex_destroy(&w->lock);
    free(w->on.peer);
    free(w->on.state);
    free(w);
}

int mc_stream_watch_open(const mc_stream_watched_t *watched, mc_stream_watch_t **watch)
{
    pthread_condattr_t attributes;
    mc_stream_watch_t *const w = calloc(1, sizeof *w);
    if (!w) {
        free(watched->peer);
        free(watched->state);
        return mc_fail_memory("a watch of streams");
    }
    w->on = *watched;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wakes, &attributes);
    pthread_condattr_destroy(&attributes);
    if (mc_thread_start(&w->thread, serve, w)) {
        free_watch(w);
        return mc_fail(MESHCOLL_ERR_SYSTEM,
                       "no thread could be started to watch the streams of a GPU");
    }
    *watch = w;
    return MESHCOLL_OK;
}

void mc_stream_watch_limit(mc_stream_watch_t *watch, int64_t milliseconds)
{
    atomic_store_explicit(&watch->limit_ms, milliseconds, memory_order_relaxed);
}

void mc_stream_watch_linger(mc_stream_watch_t *watch)
{
    watch->lingers = true;
}

void mc_stream_watch_close(mc_stream_watch_t *watch)
{
    if (!watch)
        return;
    if (watch->lingers) {
        pthread_detach(watch->thread);
        return;
    }
    pthread_mutex_lock(&watch->lock);
    watch->stops = true;
    pthread_cond_signal(&watch->wakes);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    free_watch(watch);
}
