/* Sleeping on the descriptors of transports. */
#ifndef MC_RUNTIME_PROGRESS_H
#define MC_RUNTIME_PROGRESS_H

#include "runtime/handle/handle.h"

#include <poll.h>

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

/* A sleep ends at the latest after this: what a transport forgets to announce is seen then. */
enum { MC_SLEEP_MS = 10 };
/* Descriptors watched by one sleep; with more it is a blind one. */
enum { MC_SLEEP_FDS = 16 * MC_MAX_DIMS };

typedef struct {
    struct pollfd fd[MC_SLEEP_FDS + 1]; /* one more for whoever wakes the sleeper */
    nfds_t n;
    bool blind, ready; /* not all have one; there are events already */
} mc_sleep_t;

/* Adds a handle's, and those of the handles without a lock that run something in this thread. */
void mc_sleep_watch(mc_sleep_t *s, const meshcoll_t *h);
void mc_sleep_watch_busy(mc_sleep_t *s, const meshcoll_t *h);
/* Until there is news, or so long; -1: without an end. Whether a descriptor says that there is. */
bool mc_sleep(mc_sleep_t *s, int most_ms);

/* Moves messages and all running requests on, of this handle and all others that run something in
 * this thread: peers may wait in one of those for what this rank waits for here. How many events
 * there were. A handle's lock (threads.h) is held in all of these. */
uint32_t mc_handle_progress(meshcoll_t *h);
/* Sleeps until a transport of them has news, or a little while; whether one says it has. It may say so all the
 * time and have none: UCX does until a peer answers to a new connection. So sleep `blind` after that,
 * or who waits for a peer at work takes its core. */
bool mc_handle_sleep(meshcoll_t *h, bool blind);
/* To be called while this rank waits and nothing happens: a few times a second it checks that the peers that this rank
 * waits for are alive, on these handles too (failure.h). */
void mc_handle_check_peers(meshcoll_t *h);

/* A look at a handle's transports and running requests alone. */
uint32_t mc_handle_look(meshcoll_t *h);
/* Its transports' sends so far shall reach those who sleep. */
void mc_handle_tell(meshcoll_t *h);
/* Does this thread run something on handles without a lock, besides `h`? */
bool mc_handle_others_run(const meshcoll_t *h);

#endif
