/*
 * How a rank waits. With more ranks than cores a rank that only spins starves the one it waits for,
 * and one that sleeps at once pays a wake-up for every message: look some times (crowd.h), then let
 * others run, then sleep until a transport has news.
 */
#ifndef MC_RUNTIME_WAIT_H
#define MC_RUNTIME_WAIT_H

#include "runtime/progress/progress.h"
#include "runtime/progress/progress_thread.h"

#include <sched.h>

/* Before the first turn of a wait. Who has just started has looked already, and where a core is shared what is lacking
 * comes from those who want to run: 8 ranks on 2 cores took 12.4 us for an alltoall of 64 bytes, 12.8 with two looks first
 * (docs/experiments.md). */
static inline void mc_wait_begin(const meshcoll_t *h)
{
    const mc_transport_t *const t = h->polled[0];
    if (h->crowded && !h->threads && h->n_polled == 1 && t->ops->lacks && t->ops->lacks(t))
        sched_yield();
}

static inline void mc_wait_turn(meshcoll_t *h, mc_waiting_t *w)
{
    if (h->threads) {
        mc_threads_turn(h, w);
        return;
    }
    if (mc_handle_progress(h) > 0) {
        w->idle = 0;
        w->in_vain = false;
        return;
    }
    const uint32_t looks = mc_wait_looks(h), awake = looks + mc_wait_yields(h);
    w->idle++;
    if (w->idle > awake) {
        w->in_vain = mc_handle_sleep(h, w->in_vain);
        mc_handle_check_peers(h);
    } else if (w->idle > looks) {
        sched_yield();
    }
}

#endif
