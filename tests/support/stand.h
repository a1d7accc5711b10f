/*
 * Programs of all ranks in program order, so many messages in flight of each pair and direction: where each
 * stands when none can go on. Joined messages are moved when all of them can be. Messages are counted, not
 * matched, and nothing is shared with what joins them.
 */
#ifndef MC_TESTS_SUPPORT_STAND_H
#define MC_TESTS_SUPPORT_STAND_H

#include "device/program.h"

enum { STAND_RANKS = 64 };

typedef struct {
    const mc_device_program_t *program[STAND_RANKS]; /* NULL: a rank that never begins */
    int ranks;
    uint32_t slots;
    uint32_t at[STAND_RANKS];    /* its next step */
    uint32_t waits[STAND_RANKS]; /* the message of that step that it waits for first */
    uint32_t flying[STAND_RANKS][STAND_RANKS];
} stand_t;

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
    return run->lane % 2 ? &s->flying[peer][rank] : &s->flying[rank][peer];
}

/* Walks the messages of a rank's next step: can it be done, or does it. Returns the end, or 0. */
static inline uint32_t stand_step(stand_t *s, int rank, bool does)
{
    const mc_device_program_t *const p = s->program[rank];
    for (uint32_t at = s->at[rank];;) {
        const mc_device_run_t *const run = &p->run[at];
        const bool sends = run->op == MC_DEVICE_SEND, local = run->op > MC_DEVICE_RECV_REDUCE;
        uint32_t *const flying = local ? NULL : stand_flying(s, rank, run);
        s->waits[rank] = at;
        if (flying && !does && (sends ? *flying >= s->slots : *flying == 0))
            return 0;
        if (flying && does)
            *flying += sends ? 1u : -1u;
        at = stand_end(p, at);
        if (!(p->run[at - 1].flags & MC_DEVICE_JOIN))
            return at;
    }
}

static inline void stand_run(stand_t *s)
{
    for (bool any = true; any;) {
        any = false;
        for (int r = 0; r < s->ranks; r++)
            while (s->program[r] && s->at[r] < s->program[r]->n_runs && stand_step(s, r, false)) {
                s->at[r] = stand_step(s, r, true);
                any = true;
            }
    }
}

static inline bool stand_completes(const stand_t *s)
{
    bool complete = true;
    for (int r = 0; r < s->ranks; r++)
        complete = complete && s->program[r] && s->at[r] == s->program[r]->n_runs;
    return complete;
}

#endif
