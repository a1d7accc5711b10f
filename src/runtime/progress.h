/* Sleeping on the descriptors of transports. */
#ifndef MC_RUNTIME_PROGRESS_H
#define MC_RUNTIME_PROGRESS_H

#include "runtime/handle.h"

#include <poll.h>

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

/* A look at a handle's transports and running requests alone. */
uint32_t mc_handle_look(meshcoll_t *h);
/* Its transports' sends so far shall reach those who sleep. */
void mc_handle_tell(meshcoll_t *h);
/* Does this thread run something on handles without a lock, besides `h`? */
bool mc_handle_others_run(const meshcoll_t *h);

#endif
