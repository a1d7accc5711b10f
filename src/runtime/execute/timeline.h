/*
 * A timeline keeps when each step of one run became ready, started and ended, on this rank's clock
 * (mc_now). Its memory is taken before the run; each start of the request writes it anew.
 */
#ifndef MC_RUNTIME_TIMELINE_H
#define MC_RUNTIME_TIMELINE_H

#include "plan/plan.h"

/* A message is posted and arrives, local work begins; a receive-and-reduce does both in turn. */
typedef enum {
    MC_READY,   /* what it depends on is done; for a receive-and-reduce, the message is here too */
    MC_POSTED,  /* handed to the transport: a receive may be before it is ready */
    MC_ARRIVED, /* the transport is done with it */
    MC_BEGUN,   /* local work */
    MC_ENDED,
    MC_MOMENTS
} mc_moment_t;

typedef struct {
    double at[MC_MOMENTS]; /* 0: not a moment of this step */
} mc_step_times_t;

typedef struct {
    double started, ended; /* the whole run on this rank */
    uint32_t n_steps;
    mc_step_times_t *step;
} mc_timeline_t;

/* `plan` NULL: of a request that has nothing to do. */
int mc_timeline_init(mc_timeline_t *timeline, const mc_plan_t *plan);
void mc_timeline_free(mc_timeline_t *timeline);
void mc_timeline_begin(mc_timeline_t *timeline);

/* `timeline` NULL: nothing is kept. */
static inline void mc_timeline_mark(mc_timeline_t *timeline, uint32_t step, mc_moment_t moment)
{
    if (timeline)
        timeline->step[step].at[moment] = mc_now();
}

#endif
