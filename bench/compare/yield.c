/*
 * For MPICH with more ranks than cores: its wait spins inside UCX and never yields, so a rank that
 * waits keeps the core from the one it waits for. Preloaded, this gives the core away whenever UCX
 * found nothing to do. No setting of MPICH 4.0.2 does it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

typedef unsigned progress_t(void *worker);

unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static progress_t *real; /* set to the same value by whoever comes first */
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "ucp_worker_progress");
    const unsigned done = real(worker);
    if (done == 0)
        sched_yield();
    return done;
}
