#include "runtime/progress/threads.h"

#include <unistd.h>

/* The jobs that any thread may progress. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static mc_job_t *list;
_Atomic int mc_threads_n_listed;

/* The lock --------------------------------------------------------------------------------------- */

void mc_threads_lock(mc_threads_t *t)
{
    atomic_fetch_add_explicit(&t->knocking, 1, memory_order_relaxed);
    pthread_mutex_lock(&t->lock);
    atomic_fetch_sub_explicit(&t->knocking, 1, memory_order_relaxed);
}

void mc_threads_unlock(mc_threads_t *t)
{
    pthread_mutex_unlock(&t->lock);
}

void mc_threads_wake(mc_threads_t *t)
{
    const uint64_t one = 1;
    if (!t->asleep)
        return;
    t->asleep = false;
    /* it fails only when the counter is full, and then the sleeper wakes anyway */
    if (write(t->wake, &one, sizeof one) < 0)
        return;
}

void mc_threads_notify(mc_threads_t *t)
{
    if (t->n_waiting > 0)
        pthread_cond_broadcast(&t->news);
}

/* The list ---------------------------------------------------------------------------------------- */

void mc_threads_enter(mc_job_t *job)
{
    pthread_mutex_lock(&list_lock);
    job->threads->next = list;
    list = job;
    atomic_fetch_add_explicit(&mc_threads_n_listed, 1, memory_order_relaxed);
    pthread_mutex_unlock(&list_lock);
}

void mc_threads_leave(const mc_job_t *job)
{
    pthread_mutex_lock(&list_lock);
    mc_job_t **at = &list;
    while (*at && *at != job)
        at = &(*at)->threads->next;
    if (*at) {
        *at = job->threads->next;
        atomic_fetch_sub_explicit(&mc_threads_n_listed, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&list_lock);
}

void mc_threads_forget(void)
{
    list_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    list = NULL;
    mc_threads_n_listed = 0;
}

uint32_t mc_threads_each_other(const mc_job_t *job, uint32_t (*look)(mc_job_t *other))
{
    uint32_t n = 0;
    if (pthread_mutex_trylock(&list_lock))
        return 0;
    for (mc_job_t *other = list; other; other = other->threads->next)
        if (other != job)
            n += look(other);
    pthread_mutex_unlock(&list_lock);
    return n;
}
