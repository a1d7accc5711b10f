/*
 * Threads on one handle: its lock, and a thread of its own that moves it on.
 *
 * A handle without (MESHCOLL_THREADS=single, no progress thread; the default) has no mc_threads_t, and
 * nothing is locked. Else every public function holds the handle's lock from start to end, and gives it up
 * only between two looks of a wait. What runs on a handle is written under its lock only.
 *
 * While one sleeps on the transports' descriptors, another may use the transports up to where no
 * descriptor tells of the next event. So whoever touches them wakes the sleeper, who looks again.
 * One at a time sleeps on them: the progress thread, else one of those who wait; the others sleep on a
 * condition, until a request ends or the sleeper comes back.
 *
 * "All handles that run something in this thread" (handle.h) are, for handles without a lock, a list of
 * the thread's. Handles with a lock and without a progress thread are in one list of the process: any
 * thread that waits moves them on, if nobody else does at the moment. Locks are taken in the order
 * handle, list, other handle, and all but the first only where they are free.
 */
#ifndef MC_RUNTIME_THREADS_H
#define MC_RUNTIME_THREADS_H

#include "runtime/handle/handle.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct mc_threads {
    pthread_mutex_t lock;
    pthread_cond_t news;   /* a request has ended, or the sleeper is back */
    _Atomic int knocking;  /* threads that want the lock */
    int wake;              /* a descriptor for the sleeper */
    bool asleep;           /* somebody sleeps on the descriptors */
    uint32_t n_waiting;    /* on `news` */
    bool has_thread, stop; /* the progress thread */
    pthread_t thread;
    meshcoll_t *next; /* in the process's list */
} mc_threads_t;

void mc_threads_lock(mc_threads_t *t);
void mc_threads_unlock(mc_threads_t *t);

static inline void mc_lock(const meshcoll_t *h)
{
    if (h && h->threads)
        mc_threads_lock(h->threads);
}

static inline void mc_unlock(const meshcoll_t *h)
{
    if (h && h->threads)
        mc_threads_unlock(h->threads);
}

/* The handle's transports were used, or a request of it has ended: with its lock. */
void mc_threads_wake(mc_threads_t *t);
void mc_threads_tell(mc_threads_t *t);

/* The process's list of handles that any thread moves on. */
void mc_threads_enter(meshcoll_t *h);
void mc_threads_leave(const meshcoll_t *h);
/* Are there any but `h`? No sleeper watches their descriptors. */
extern _Atomic int mc_threads_n_listed;
static inline bool mc_threads_others_run(const meshcoll_t *h)
{
    const int own = h->threads && !h->threads->has_thread;
    return atomic_load_explicit(&mc_threads_n_listed, memory_order_relaxed) > own;
}
/* Calls `look` for each of them; the sum of what it returns. 0 while another thread does. */
uint32_t mc_threads_each_other(const meshcoll_t *h, uint32_t (*look)(meshcoll_t *other));

#endif
