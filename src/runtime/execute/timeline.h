/*
 * Records when each step of a run became ready, started and ended, on this rank's clock (mc_now).
 * Its memory is allocated before the run; each start of the request overwrites it.
 */
#ifndef MC_RUNTIME_TIMELINE_H
#define MC_RUNTIME_TIMELINE_H

#include "plan/plan.h"

/* Messages are posted and arrive, local work begins and ends. A staged receive-and-reduce does
 * both in turn; one that is reduced as it arrives has no MC_BEGUN. */
typedef enum {
    MC_READY,   /* its dependencies are complete; of a staged receive-and-reduce the message too */
    MC_POSTED,  /* passed to the transport; a staged receive may be before it is ready */
    MC_ARRIVED, /* the transport has completed it */
    MC_BEGUN,   /* local work */
    MC_ENDED,
    MC_MOMENTS
} mc_moment_t;

typedef struct {
    double at[MC_MOMENTS]; /* 0: not recorded for this step */
} mc_step_times_t;

typedef struct mc_timeline mc_timeline_t;
struct mc_timeline {
    double started, ended; /* of the whole run on this rank */
    uint32_t n_steps;
    mc_step_times_t *step;
};

/* `plan` NULL: a request without steps. */
int mc_timeline_init(mc_timeline_t *timeline, const mc_plan_t *plan);
void mc_timeline_free(mc_timeline_t *timeline);
void mc_timeline_begin(mc_timeline_t *timeline);

/* `timeline` NULL: nothing is recorded. */
static inline void mc_timeline_mark(mc_timeline_t *timeline, uint32_t step, mc_moment_t moment)
{
    if (timeline)
        timeline->step[step].at[moment] = mc_now();
}

#endif
