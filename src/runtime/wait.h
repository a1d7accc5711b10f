/*
 * How a rank waits. With more ranks than cores a rank that only spins starves the one it waits for,
 * and one that sleeps at once pays a wake-up for every message: look some times (crowd.h), then let
 * others run, then sleep until a transport has news.
 */
#ifndef MC_RUNTIME_WAIT_H
#define MC_RUNTIME_WAIT_H

#include "runtime/handle.h"

#include <sched.h>

/* On a core of its own a rank looks for about as long as waking up would take, and nobody is kept
 * from working while it yields: some milliseconds, in which tens of MiB are read from its memory. To
 * sleep after 64 yields made it late by a wake-up of an idle core, 40 us for 1 MiB in 60.
 *
 * Where ranks share cores, who yields takes time from who works. In a pipeline that is the lesser evil:
 * the next segment is due soon, and whoever sleeps has its sender wake it up for each. */
enum {
    MC_WAIT_LOOKS = 1000,
    MC_WAIT_LOOKS_CROWDED = 1,
    MC_WAIT_YIELDS = 8192,
    MC_WAIT_YIELDS_CROWDED = 64,
    MC_WAIT_YIELDS_PIPELINED = 512 /* and crowded */
};

typedef struct {
    uint32_t idle;   /* looks since something happened */
    bool for_events; /* not for a request's end */
    bool in_vain;    /* the last sleep ended at once, and nothing had happened */
} mc_waiting_t;

static inline uint32_t mc_wait_looks(const meshcoll_t *h)
{
    return h->crowded ? MC_WAIT_LOOKS_CROWDED : MC_WAIT_LOOKS;
}

static inline uint32_t mc_wait_yields(const meshcoll_t *h)
{
    if (!h->crowded)
        return MC_WAIT_YIELDS;
    return h->pipelined ? MC_WAIT_YIELDS_PIPELINED : MC_WAIT_YIELDS_CROWDED;
}

/* Before the first turn of a wait. Who has just started has looked already, and where a core is shared what is lacking
 * comes from those who want to run: 8 ranks on 2 cores took 12.4 us for an alltoall of 64 bytes, 12.8 with two looks first
 * (docs/experiments.md). */
static inline void mc_wait_begin(const meshcoll_t *h)
{
    const mc_transport_t *const t = h->polled[0];
    if (h->crowded && !h->threads && h->n_polled == 1 && t->ops->lacks && t->ops->lacks(t))
        sched_yield();
}

/* Of a handle with a lock, which is held, and not in between. */
void mc_threads_turn(meshcoll_t *h, mc_waiting_t *w);

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
