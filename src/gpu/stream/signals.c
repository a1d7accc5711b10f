#include "gpu/stream/signals.h"

#include "base/system/descriptor.h"
#include "base/system/process.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A part: the notice that a rank has, where its stream stands, then the states of each peer's lane to it.
 * No two ranks write the same cache line, but for the ends of a lane. */
enum { NOTICE = 0, PLACE = MC_STREAM_APART, STATES = 2 * MC_STREAM_APART };
/* Words of a lane: the states of its slots, and whether a launch has begun. */
enum { BEGUN = MC_DEVICE_SLOTS, WORDS };
_Static_assert(sizeof(mc_stream_place_t) <= MC_STREAM_APART, "it has a cache line");

/* POLL_US: how late a failure or a limit may be seen; a thread that wakes so often takes no time.
 * OPEN_US: until the next wait of a stream that moves on is ended. */
enum { POLL_US = 10000, OPEN_US = 100 };

/* Words ----------------------------------------------------------------------------------------- */

static size_t lane_at(int32_t peer)
{
    return STATES + (size_t)peer * WORDS * MC_STREAM_APART;
}

static _Atomic uint32_t *word_at(const mc_stream_signals_t *s, int32_t rank, size_t at)
{
    return (_Atomic uint32_t *)(void *)(s->part[rank].at + at);
}

static mc_stream_place_t *place_of(const mc_stream_signals_t *s)
{
    return (mc_stream_place_t *)(void *)word_at(s, s->rank, PLACE);
}

/* The words of this rank's lanes have numbers, peer by peer; its lane to itself is nobody's. */
static uint32_t number_of(int32_t peer, bool receives)
{
    return (2 * (uint32_t)peer + receives) * WORDS;
}
static uint32_t n_states(const mc_stream_signals_t *s)
{
    return number_of(s->ranks, false);
}

/* In whose part a word lies, and where. */
typedef struct {
    int32_t rank;
    size_t at;
} state_place_t;

static state_place_t find_state(const mc_stream_signals_t *s, uint32_t number)
{
    const uint32_t lane = number / WORDS;
    const int32_t peer = (int32_t)(lane / 2);
    const bool receives = lane % 2;
    return (state_place_t){receives ? s->rank : peer,
                           lane_at(receives ? peer : s->rank) + number % WORDS * MC_STREAM_APART};
}

static _Atomic uint32_t *state_at(const mc_stream_signals_t *s, uint32_t number)
{
    const state_place_t place = find_state(s, number);
    return word_at(s, place.rank, place.at);
}

mc_cu_address_t mc_stream_signals_place(const mc_stream_signals_t *s)
{
    return s->part[s->rank].device + PLACE;
}

void mc_stream_signals_lane(const mc_stream_signals_t *s, int32_t peer, bool receives,
                            mc_stream_lane_t *lane)
{
    lane->word = number_of(peer, receives);
    const state_place_t place = find_state(s, lane->word);
    lane->states = s->part[place.rank].device + place.at;
    lane->begun = lane->states + BEGUN * MC_STREAM_APART;
}

uint32_t mc_stream_signals_notice(const mc_stream_signals_t *s)
{
    return *word_at(s, s->rank, NOTICE);
}

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

static void report(const mc_stream_signals_t *s, uint32_t status, uint32_t digest)
{
    const mc_stream_place_t *const place = place_of(s);
    s->report->run = load(&place->run);
    s->report->pass = load(&place->pass);
    s->report->program = load(&place->program) - 1;
    s->report->number = load(&place->number);
    s->report->digest = digest;
    __atomic_store_n(&s->report->status, status, __ATOMIC_RELEASE);
}

/* Does the stream wait for the first message of a lane, where one of another call lies? 0, or what that says. Two looks
 * must find the same: the stream may have gone on between the loads of one. */
static uint32_t find_other(const mc_stream_signals_t *s)
{
    const mc_stream_place_t *const place = place_of(s);
    const uint32_t word = load(&place->word), whose = load(&place->whose);
    const uint32_t says = word > 0 && word <= n_states(s) ? load(state_at(s, word - 1)) : 0;
    const bool other = says && says < MC_STREAM_EMPTY && says != whose;
    return other && load(&place->word) == word ? says : 0;
}

static bool differs(const mc_stream_signals_t *s, stand_t *stand)
{
    const uint32_t other = find_other(s);
    const bool found = other && other == stand->other;
    stand->other = other;
    if (found)
        report(s, MC_DEVICE_DIFFERS, mc_stream_digest(other));
    return found;
}

/* Does the stream stand where it stood so long ago? A GPU's write that comes between the two of
 * `moved` is of this moment. */
static bool is_late(mc_stream_signals_t *s, stand_t *stand)
{
    mc_stream_place_t *const place = place_of(s);
    const double now = mc_now();
    const int64_t limit = atomic_load_explicit(&s->limit_ms, memory_order_relaxed);
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
    report(s, MC_DEVICE_LATE, 0);
    return true;
}

/* 0, or the notice for the peers. */
static uint32_t find_end(mc_stream_signals_t *s, stand_t *stand)
{
    const uint32_t notice = mc_stream_signals_notice(s), own = 1 + 2 * (uint32_t)s->rank;
    if (notice)
        return notice;
    if (load(s->alarm) || differs(s, stand))
        return own;
    return is_late(s, stand) ? own + 1 : 0;
}

/* The end --------------------------------------------------------------------------------------- */

static void notify(const mc_stream_signals_t *s, uint32_t what)
{
    for (int32_t r = 0; r < s->ranks; r++) {
        uint32_t none = 0;
        (void)atomic_compare_exchange_strong(word_at(s, r, NOTICE), &none, what);
    }
}

static void open_all(const mc_stream_signals_t *s)
{
    for (uint32_t i = 0; i < n_states(s); i++)
        atomic_store_explicit(state_at(s, i), MC_STREAM_OPEN, memory_order_release);
}

/* Waits for so long, or until the watch is to stop; returns whether it is. */
static bool rest(mc_stream_signals_t *s, long microseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 1000 * microseconds;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&s->lock);
    if (!s->stops)
        (void)pthread_cond_timedwait(&s->wakes, &s->lock, &until);
    const bool stops = s->stops;
    pthread_mutex_unlock(&s->lock);
    return stops;
}

/* What peers' streams and this rank's own write closes states again. */
static void hold_open(mc_stream_signals_t *s)
{
    const mc_stream_place_t *const place = place_of(s);
    uint32_t run = load(&place->run);
    for (long us = OPEN_US; !rest(s, us);) {
        open_all(s);
        const uint32_t now = load(&place->run);
        us = now != run ? OPEN_US : 2 * us < POLL_US ? 2 * us : POLL_US;
        run = now;
    }
}

static void *serve(void *argument)
{
    mc_stream_signals_t *const s = argument;
    stand_t stand = {.since = mc_now()};
    uint32_t end = 0;
    while (!end && !rest(s, POLL_US))
        end = find_end(s, &stand);
    if (end) {
        notify(s, end);
        hold_open(s);
    }
    return NULL;
}

/* Opening and closing --------------------------------------------------------------------------- */

static size_t part_bytes(int32_t ranks)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (lane_at(ranks) + page - 1) / page * page;
}

int mc_stream_signals_make(mc_stream_signals_t *s, int32_t rank, int32_t ranks,
                           mc_cu_device_t device, mc_sealed_t *file)
{
    int flushes = 0;
    s->rank = rank;
    s->ranks = ranks;
    s->part = calloc((size_t)ranks, sizeof *s->part);
    if (!s->part)
        return mc_fail_memory("signals of streams");
    int status = mc_cuda_check_streams();
    if (!status)
        status = mc_cuda_status(mc_cuda()->device_attribute(&flushes, MC_CU_FLUSHES, device),
                                "be asked what it can do");
    if (!status)
        status = mc_cuda_shared_make(part_bytes(ranks), file, &s->part[rank]);
    if (status)
        return status;
    s->flushes = flushes;
    for (uint32_t word = 0; word < (uint32_t)ranks * WORDS; word++)
        *word_at(s, rank, STATES + word * MC_STREAM_APART) = MC_STREAM_EMPTY;
    return MESHCOLL_OK;
}

int mc_stream_signals_map(mc_stream_signals_t *s, int32_t peer, const mc_sealed_t *file)
{
    return mc_cuda_shared_map(part_bytes(s->ranks), file, &s->part[peer]);
}

static void drop_watch(mc_stream_signals_t *s)
{
    pthread_cond_destroy(&s->wakes);
    pthread_mutex_destroy(&s->lock);
    s->runs = false;
}

int mc_stream_signals_watch(mc_stream_signals_t *s, const _Atomic uint32_t *alarm,
                            mc_device_report_t *reports)
{
    pthread_condattr_t attributes;
    s->alarm = alarm;
    s->report = reports;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wakes, &attributes);
    pthread_condattr_destroy(&attributes);
    s->runs = mc_thread_start(&s->thread, serve, s) == 0;
    if (s->runs)
        return MESHCOLL_OK;
    drop_watch(s);
    return mc_fail(MESHCOLL_ERR_SYSTEM, "no thread could be started to watch the streams of a GPU");
}

static void end_watch(mc_stream_signals_t *s)
{
    if (!s->runs || s->lingers)
        return;
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_signal(&s->wakes);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    drop_watch(s);
}

void mc_stream_signals_unmap(mc_stream_signals_t *s)
{
    end_watch(s);
    for (int32_t r = 0; s->part && !s->lingers && r < s->ranks; r++)
        if (r != s->rank)
            mc_cuda_shared_close(&s->part[r], false);
}

/* A watch that lingers uses all of it until the process ends. */
void mc_stream_signals_free(mc_stream_signals_t *s, bool leaves)
{
    end_watch(s);
    if (s->runs) {
        mc_descriptor_close(&s->part[s->rank].fd);
        pthread_detach(s->thread);
        return;
    }
    if (s->part)
        mc_cuda_shared_close(&s->part[s->rank], leaves);
    free(s->part);
    free(s);
}
