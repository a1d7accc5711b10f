/*
 * The functions of the caller that the library calls while it progresses: callbacks of complete
 * requests, and the progress hook of a mesh.
 *
 * A request with a callback that has ended is due. It joins a list of the thread that has
 * progressed it, and counts as running until its callback has returned, so that no owner gets it
 * back earlier. The thread calls the callbacks of its list once it holds no lock: after each
 * progress, and when it leaves the library. Both kinds of functions may call what does not block;
 * what blocks is refused, because nothing else would progress until it returned.
 *
 * An exception or longjmp may leave them. An exception is noticed at once; longjmp by a later call, which finds on the
 * stack that the function is not being called any more.
 */
#ifndef MC_RUNTIME_CALLBACK_H
#define MC_RUNTIME_CALLBACK_H

#include "runtime/handle/request.h"
#include "runtime/progress/threads.h"

#include <stdatomic.h>

/* Makes the callback of an ended request due. */
void mc_callback_due(meshcoll_request_t *r);
/* Calls this thread's callbacks that are due, unless it is in one. It must hold no lock. */
void mc_callbacks_run(void);
/* Are any due, in whatever thread? */
extern _Atomic uint32_t mc_callbacks_n_due;
static inline bool mc_callbacks_are_due(void)
{
    return atomic_load_explicit(&mc_callbacks_n_due, memory_order_relaxed) > 0;
}
/* In this one, and may it call them? */
bool mc_callbacks_are_mine(void);
/* Returns OK, or an error where this thread is in a callback or a hook: `function` would block. */
int mc_callback_check(const char *function);
/* Is this thread in a callback or a hook? */
bool mc_callback_is_inside(void);
/* Is this thread in the callback of this request? Then that request counts as ended from here on. */
bool mc_callback_leave(meshcoll_request_t *r);
/* Calls them as mc_callbacks_run does; returns `status`. */
int mc_callbacks_leave(int status);
/* Releases the lock of a thread that leaves the library with a status, and calls its callbacks. */
static inline int mc_job_leave(const mc_job_t *job, int status)
{
    mc_job_unlock(job);
    return mc_callbacks_are_due() ? mc_callbacks_leave(status) : status;
}
static inline int mc_leave(const meshcoll_t *h, int status)
{
    mc_unlock(h);
    return mc_callbacks_are_due() ? mc_callbacks_leave(status) : status;
}

/* Lets its owner learn that a run has ended, or releases what the owner has released. */
static inline void mc_request_notify(meshcoll_request_t *r)
{
    r->running = false;
    if (r->mesh && r->mesh->job->threads)
        mc_threads_notify(r->mesh->job->threads);
    /* of a failed run some may be in flight until the mesh is closed; not where only the request failed */
    if (r->released && (r->status == MESHCOLL_OK || r->why || !r->mesh))
        r->kind->release(r);
}

/* Calls the mesh's hook, which it has; returns whether it moved anything. Releases the lock, which
 * is held, meanwhile. */
bool mc_hook_run(meshcoll_t *h);

#endif
