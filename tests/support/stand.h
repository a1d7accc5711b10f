/*
 * Programs of all ranks, each track in program order, so many messages in flight of each pair, direction and
 * track: where each stands when none can go on. Joined messages are moved when all of them can be. Messages are
 * counted, not matched, and nothing is shared with what joins them.
 */
#ifndef MC_TESTS_SUPPORT_STAND_H
#define MC_TESTS_SUPPORT_STAND_H

#include "gpu/program/program.h"

enum { STAND_RANKS = 64 };

typedef struct {
    const mc_device_program_t *program[STAND_RANKS]; /* NULL: a rank that never begins */
    int ranks;
    uint32_t slots;
    uint32_t at[STAND_RANKS][MC_DEVICE_TRACKS]; /* the next step of a track */
    uint32_t waits[STAND_RANKS]
                  [MC_DEVICE_TRACKS]; /* the run of that step that it waits for first */
    uint32_t marks[STAND_RANKS][MC_DEVICE_TRACKS];
    uint32_t flying[MC_DEVICE_TRACKS][STAND_RANKS][STAND_RANKS];
} stand_t;

static inline uint32_t stand_track(const mc_device_run_t *run)
{
    return (uint32_t)run->flags >> MC_DEVICE_TRACK_SHIFT;
}

/* Runs [at, end) of one message, or of a local step. */
static inline uint32_t stand_end(const mc_device_program_t *p, uint32_t at)
{
    while (p->run[at].flags & MC_DEVICE_MORE)
        at++;
    return at + 1;
}

static inline uint32_t *stand_flying(stand_t *s, int rank, const mc_device_run_t *run)
{
    const int peer = s->program[rank]->peer[run->lane / 2];
    uint32_t(*const flying)[STAND_RANKS] = s->flying[stand_track(run)];
    return run->lane % 2 ? &flying[peer][rank] : &flying[rank][peer];
}

/* Can the message, the mark or the wait be done, or does it. Local steps always can. */
static inline bool stand_run_of(stand_t *s, int rank, const mc_device_run_t *run, bool does)
{
    if (run->op == MC_DEVICE_MARK)
        s->marks[rank][run->lane] += does;
    if (run->op == MC_DEVICE_AFTER)
        return s->marks[rank][run->lane] >= run->n;
    if (run->op > MC_DEVICE_RECV_REDUCE)
        return true;
    const bool sends = run->op == MC_DEVICE_SEND;
    uint32_t *const flying = stand_flying(s, rank, run);
    if (!does)
        return sends ? *flying < s->slots : *flying > 0;
    *flying += sends ? 1u : -1u;
    return true;
}

/* Walks the messages of a track's next step: can it be done, or does it. Returns the end, or 0. */
static inline uint32_t stand_step(stand_t *s, int rank, uint32_t track, bool does)
{
    const mc_device_program_t *const p = s->program[rank];
    for (uint32_t at = s->at[rank][track];;) {
        const bool own = stand_track(&p->run[at]) == track;
        s->waits[rank][track] = at;
        if (own && !stand_run_of(s, rank, &p->run[at], does))
            return 0;
        at = stand_end(p, at);
        if (!(p->run[at - 1].flags & MC_DEVICE_JOIN))
            return at;
    }
}

static inline bool stand_walk(stand_t *s, int rank, uint32_t track)
{
    bool any = false;
    while (s->at[rank][track] < s->program[rank]->n_runs && stand_step(s, rank, track, false)) {
        s->at[rank][track] = stand_step(s, rank, track, true);
        any = true;
    }
    return any;
}

static inline void stand_run(stand_t *s)
{
    for (bool any = true; any;) {
        any = false;
        for (int r = 0; r < s->ranks; r++)
            for (uint32_t t = 0; s->program[r] && t < s->program[r]->tracks; t++)
                any = stand_walk(s, r, t) || any;
    }
}

static inline bool stand_completes(const stand_t *s)
{
    bool complete = true;
    for (int r = 0; r < s->ranks; r++)
        for (uint32_t t = 0; complete && (!s->program[r] || t < s->program[r]->tracks); t++)
            complete = s->program[r] && s->at[r][t] == s->program[r]->n_runs;
    return complete;
}

#endif
