/*
 * Threads on the meshes of one job: its lock, and a progress thread of its own. A job used by one
 * thread, the default, has neither. Otherwise every public function holds the lock from start to end,
 * and releases it only between two polls of a wait.
 *
 * While one thread sleeps on the transports' descriptors, another may use the transports, after
 * which no descriptor signals the next event. So a thread that has used them wakes the sleeper,
 * which polls again. One thread at a time sleeps on the descriptors: the progress thread, else one
 * of those that wait. The others wait on a condition until a request ends or the sleeper returns.
 *
 * mc_job_progress also progresses other jobs. Those without a lock are in a list of their
 * thread (busy.h). Those with a lock and without a progress thread are in one list of the process:
 * any waiting thread progresses them, unless another thread does so at the moment. Locks are taken
 * in the order job, list, other job, and all but the first only by trying.
 */
#ifndef MC_RUNTIME_THREADS_H
#define MC_RUNTIME_THREADS_H

#include "runtime/handle/handle.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct mc_threads {
    pthread_mutex_t lock;
    pthread_cond_t news;   /* a request has ended, or the sleeper has returned */
    _Atomic int knocking;  /* threads that wait for the lock */
    int wake;              /* an eventfd to wake the sleeper */
    bool asleep;           /* a thread sleeps on the descriptors */
    uint32_t n_waiting;    /* threads that wait on `news` */
    bool has_thread, stop; /* of the progress thread */
    pthread_t thread;
    mc_job_t *next; /* next in the process's list */
} mc_threads_t;

/* Opens what the settings ask for; job->threads stays NULL where a single thread uses the job.
 * ERR_PARSE or ERR_NO_MEMORY. */
int mc_threads_open(mc_job_t *job, const mc_settings_t *settings);
void mc_threads_close(mc_job_t *job);

void mc_threads_lock(mc_threads_t *t);
void mc_threads_unlock(mc_threads_t *t);

static inline void mc_job_lock(const mc_job_t *job)
{
    if (job->threads)
        mc_threads_lock(job->threads);
}
static inline void mc_job_unlock(const mc_job_t *job)
{
    if (job->threads)
        mc_threads_unlock(job->threads);
}

static inline void mc_lock(const meshcoll_t *h)
{
    if (h && h->job->threads)
        mc_threads_lock(h->job->threads);
}
static inline void mc_unlock(const meshcoll_t *h)
{
    if (h && h->job->threads)
        mc_threads_unlock(h->job->threads);
}

/* To be called with the lock held: wakes the sleeper after the transports were used; notifies
 * waiting threads after a request has ended. */
void mc_threads_wake(mc_threads_t *t);
void mc_threads_notify(mc_threads_t *t);

/* Adds the job to, or removes it from, the process's list of jobs that any thread
 * progresses. */
void mc_threads_enter(mc_job_t *job);
void mc_threads_leave(const mc_job_t *job);
/* In a child of fork: the list is empty. */
void mc_threads_forget(void);
/* Are there any besides `job`? No sleeper watches their descriptors. */
extern _Atomic int mc_threads_n_listed;
static inline bool mc_threads_others_run(const mc_job_t *job)
{
    const int own = job->threads && !job->threads->has_thread;
    return atomic_load_explicit(&mc_threads_n_listed, memory_order_relaxed) > own;
}
/* Calls `look` for each of them except `job`; returns the sum of its results, or 0 while another
 * thread does the same. */
uint32_t mc_threads_each_other(const mc_job_t *job, uint32_t (*look)(mc_job_t *other));

#endif
