/*
 * How a rank waits. With more ranks than cores a rank that only spins starves the one it waits for,
 * and one that sleeps at once pays a wake-up for every message: look some times, then let others
 * run, then sleep until a transport has news.
 */
#ifndef MC_RUNTIME_WAIT_H
#define MC_RUNTIME_WAIT_H

#include "runtime/handle.h"

#include <sched.h>

enum { MC_WAIT_LOOKS = 16, MC_WAIT_YIELDS = 64 };

typedef struct {
    uint32_t idle; /* looks since something happened */
} mc_waiting_t;

static inline void mc_wait_turn(meshcoll_t *h, mc_waiting_t *w)
{
    if (mc_handle_progress(h) > 0) {
        w->idle = 0;
        return;
    }
    w->idle++;
    if (w->idle > MC_WAIT_LOOKS + MC_WAIT_YIELDS)
        mc_handle_sleep(h);
    else if (w->idle > MC_WAIT_LOOKS)
        sched_yield();
}

#endif
