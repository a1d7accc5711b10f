/*
 * How a rank waits. With more ranks than cores, a rank that only spins starves the one it waits
 * for, and one that sleeps at once pays a wake-up for every message. So it polls a few times, then
 * yields, then sleeps until a transport has an event; progress.h has the numbers.
 */
#ifndef MC_RUNTIME_WAIT_H
#define MC_RUNTIME_WAIT_H

#include "runtime/progress/callback.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"

static inline void mc_wait_turn(meshcoll_t *h, mc_waiting_t *w)
{
    if (h->job->threads) {
        mc_threads_turn(h, w);
        return;
    }
    if (mc_job_progress(h->job) > 0) {
        w->idle = 0;
        w->in_vain = false;
        if (mc_callbacks_are_due())
            mc_callbacks_run();
        return;
    }
    if (++w->idle > mc_wait_polls(h->job))
        mc_wait_idle(h, w);
}

#endif
