#include "gpu/mesh/signals.h"

#include <stdlib.h>
#include <unistd.h>

/* A part: the notice that a rank has, where its stream stands, then the states of each peer's lane to it.
 * No two ranks write the same cache line, but for the ends of a lane. */
enum { NOTICE = 0, PLACE = MC_STREAM_APART, STATES = 2 * MC_STREAM_APART };
/* Words of a lane: the states of its slots, and whether a launch has begun. */
enum { BEGUN = MC_DEVICE_SLOTS, WORDS };
_Static_assert(sizeof(mc_stream_place_t) <= MC_STREAM_APART, "it has a cache line");

static size_t lane_at(int32_t peer)
{
    return STATES + (size_t)peer * WORDS * MC_STREAM_APART;
}

static _Atomic uint32_t *word_at(const mc_gpu_signals_t *s, int32_t rank, size_t at)
{
    return (_Atomic uint32_t *)(void *)(s->part.part[rank].mapped + at);
}

/* In whose part the states of a lane lie, and where. */
typedef struct {
    int32_t rank;
    size_t at;
} lane_place_t;

static lane_place_t place_of(const mc_gpu_signals_t *s, int32_t peer, bool receives)
{
    const int32_t own = s->part.layout.rank;
    return receives ? (lane_place_t){own, lane_at(peer)} : (lane_place_t){peer, lane_at(own)};
}

mc_cu_address_t mc_gpu_signals_place(const mc_gpu_signals_t *s)
{
    return s->part.part[s->part.layout.rank].host + PLACE;
}

mc_cu_address_t mc_gpu_signals_states(const mc_gpu_signals_t *s, int32_t peer, bool receives)
{
    const lane_place_t place = place_of(s, peer, receives);
    return s->part.part[place.rank].host + place.at;
}

mc_cu_address_t mc_gpu_signals_begun(const mc_gpu_signals_t *s, int32_t peer, bool receives)
{
    return mc_gpu_signals_states(s, peer, receives) + BEGUN * MC_STREAM_APART;
}

/* As mc_gpu_signals_watch lists them. */
uint32_t mc_gpu_signals_word(const mc_gpu_signals_t *s, int32_t peer, bool receives)
{
    const int32_t before = peer < s->part.layout.rank ? peer : peer - 1;
    return (2 * (uint32_t)before + !receives) * WORDS;
}

uint32_t mc_gpu_signals_notice(const mc_gpu_signals_t *s)
{
    return *word_at(s, s->part.layout.rank, NOTICE);
}

/* Opening ----------------------------------------------------------------------------------------- */

static size_t whole_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static int find_flush(mc_gpu_signals_t *s, mc_cu_device_t device)
{
    int flushes = 0;
    const int status = mc_cuda_status(mc_cuda()->device_attribute(&flushes, MC_CU_FLUSHES, device),
                                      "be asked what it can do");
    s->flushes = flushes;
    return status;
}

int mc_gpu_signals_make(mc_gpu_signals_t *s, int32_t rank, int32_t ranks, mc_cu_device_t device,
                        mc_sealed_t *file)
{
    s->part = (mc_gpu_arena_t){
        .layout = {.rank = rank, .ranks = ranks, .bytes = whole_pages(lane_at(ranks))},
        .part = calloc((size_t)ranks, sizeof *s->part.part),
        .fd = -1};
    if (!s->part.part)
        return mc_fail_memory("signals of streams");
    int status = mc_cuda_check_streams();
    if (!status)
        status = find_flush(s, device);
    if (!status)
        status = mc_gpu_arena_make_host(&s->part, file);
    if (status)
        return status;
    for (int32_t r = 0; r < ranks; r++)
        for (uint32_t word = 0; word < WORDS; word++)
            *word_at(s, rank, lane_at(r) + word * MC_STREAM_APART) = MC_STREAM_EMPTY;
    return MESHCOLL_OK;
}

/* The states of a lane, appended to the watch's list, which has room for all. */
static void add_states(const mc_gpu_signals_t *s, lane_place_t place, mc_stream_watched_t *on)
{
    for (uint32_t word = 0; word < WORDS; word++)
        on->state[on->n_states++] = word_at(s, place.rank, place.at + word * MC_STREAM_APART);
}

int mc_gpu_signals_watch(mc_gpu_signals_t *s, const _Atomic uint32_t *alarm,
                         mc_device_report_t *report)
{
    const int32_t own = s->part.layout.rank, ranks = s->part.layout.ranks;
    const size_t lanes = 2 * (size_t)ranks;
    mc_stream_watched_t on = {.rank = own,
                              .alarm = alarm,
                              .place = (void *)(s->part.part[own].mapped + PLACE),
                              .report = report,
                              .notice = word_at(s, own, NOTICE)};
    on.peer = calloc((size_t)ranks, sizeof *on.peer);
    on.state = calloc(lanes * WORDS, sizeof *on.state);
    if (!on.peer || !on.state) {
        free(on.peer);
        free(on.state);
        return mc_fail_memory("a watch of streams");
    }
    for (int32_t r = 0; r < ranks; r++) {
        if (r == own)
            continue;
        on.peer[on.n_peers++] = word_at(s, r, NOTICE);
        add_states(s, place_of(s, r, true), &on);
        add_states(s, place_of(s, r, false), &on);
    }
    return mc_stream_watch_open(&on, &s->watch);
}

void mc_gpu_signals_end(mc_gpu_signals_t *s)
{
    mc_stream_watch_close(s->watch);
    s->watch = NULL;
}
