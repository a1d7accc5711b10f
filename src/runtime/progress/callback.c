#include "runtime/progress/callback.h"

/* Of a thread. */
typedef struct {
    meshcoll_request_t *first, *last; /* whose callbacks are due */
    meshcoll_request_t *called;       /* whose callback it is in, until that has dealt with it */
    bool inside;                      /* it is in a callback or a hook */
} callbacks_t;

static _Thread_local callbacks_t mine;
_Atomic uint32_t mc_callbacks_n_due;

void mc_callback_due(meshcoll_request_t *r)
{
    r->running = true;
    r->callback.next = NULL;
    if (mine.first)
        mine.last->callback.next = r;
    else
        mine.first = r;
    mine.last = r;
    if (r->mesh)
        r->mesh->n_restricted++;
    atomic_fetch_add_explicit(&mc_callbacks_n_due, 1, memory_order_relaxed);
}

/* The request of a call serves other calls next, which have their own callbacks. */
static void finish(meshcoll_request_t *r)
{
    mine.called = NULL;
    if (!r->persistent)
        r->callback.function = NULL;
    mc_request_notify(r);
}

static void call(meshcoll_request_t *r)
{
    meshcoll_t *const h = r->mesh;
    mc_lock(h);
    const mc_callback_t callback = r->callback;
    const int status = r->status;
    const char *const why = r->why ? r->why
                            : h    ? h->job->failure.why
                                   : "the mesh was destroyed while this request ran";
    mc_unlock(h);
    if (status < 0)
        mc_fail(status, "%s", why);
    mine.called = r;
    if (callback.function)
        callback.function(callback.context, r, status);
    mc_lock(h);
    if (mine.called == r)
        finish(r);
    if (h)
        h->n_restricted--;
    mc_unlock(h);
    atomic_fetch_sub_explicit(&mc_callbacks_n_due, 1, memory_order_relaxed);
}

bool mc_callbacks_are_mine(void)
{
    return mine.first && !mine.inside;
}

void mc_callbacks_run(void)
{
    if (mine.inside)
        return;
    mine.inside = true;
    for (meshcoll_request_t *r; (r = mine.first);) {
        mine.first = r->callback.next;
        call(r);
    }
    mine.inside = false;
}

int mc_callbacks_leave(int status)
{
    mc_callbacks_run();
    return status;
}

int mc_callback_check(const char *function)
{
    return mine.inside ? mc_fail(MESHCOLL_ERR_INVALID_ARG,
                                 "%s: a callback or a progress hook must not call what blocks; "
                                 "begin the call and let its own callback go on",
                                 function)
                       : MESHCOLL_OK;
}

bool mc_callback_leave(meshcoll_request_t *r)
{
    if (mine.called != r)
        return false;
    finish(r);
    return true;
}

bool mc_hook_run(meshcoll_t *h)
{
    if (mine.inside)
        return false;
    h->n_restricted++;
    mc_unlock(h);
    mine.inside = true;
    const bool moved = h->hook.function(h->hook.context) != 0;
    mine.inside = false;
    mc_lock(h);
    h->n_restricted--;
    return moved;
}
