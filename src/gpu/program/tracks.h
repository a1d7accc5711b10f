/*
 * Tracks: which phases of a program run beside each other.
 *
 * In program order a rank that waits for a message between machines does nothing else, although the
 * next segment's messages within the machine are ready. So each track has a block of its own for each
 * slice, which does the track's steps in program order, and waits for another track only where a
 * dependency of the plan says so: the other sets a mark behind its step (MC_DEVICE_MARK), and this one
 * awaits it (MC_DEVICE_AFTER). Lanes are those of a block, so that tracks share none.
 *
 * Tracks cannot hang where the program in one track does not. An order in which that one completes has
 * all waits of the tracks from earlier to later steps, too: those for marks are dependencies, which
 * program order keeps, and of the others each block has a part.
 */
#ifndef MC_DEVICE_TRACKS_H
#define MC_DEVICE_TRACKS_H

#include "base/arena.h"
#include "gpu/program/format.h"
#include "plan/plan.h"

/* By phase of the strategy; the same on all ranks. Zeros, but for n = 1: one track. */
typedef struct {
    uint32_t n; /* 1 to MC_DEVICE_TRACKS */
    uint8_t of[MC_PLAN_PHASES];
} mc_device_tracks_t;

/* Which marks the steps of a plan set and await. */
typedef struct {
    mc_arena_t arena;
    const mc_plan_t *plan;
    const mc_device_tracks_t *tracks;
    bool scales;    /* products come before all steps, as the first mark of track 0 */
    uint32_t *mark; /* by step: its mark in its track, from 1; 0: none */
    uint32_t (
        *after)[MC_DEVICE_TRACKS]; /* by step: the marks of other tracks that it needs; 0: none */
    uint32_t marks[MC_DEVICE_TRACKS];
    uint32_t awaited[MC_DEVICE_TRACKS][MC_DEVICE_TRACKS]; /* so far: by track, of the other */
} mc_device_order_t;

/* ERR_NO_MEMORY. With one track there is no mark. The caller frees its arena. */
int mc_device_order_open(const mc_plan_t *plan, const mc_device_tracks_t *tracks, bool scales,
                         mc_device_order_t *order);

static inline uint32_t mc_device_track_of(const mc_device_order_t *o, uint32_t step)
{
    return o->tracks->of[o->plan->step[step].phase];
}
/* The mark of track `other` that a step must await, and that its track has not yet; 0: none. Steps are
 * asked in program order. */
uint32_t mc_device_order_after(mc_device_order_t *order, uint32_t step, uint32_t other);

#endif
