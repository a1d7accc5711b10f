#include "runtime/progress/callback.h"

#include <unwind.h>

/* A call of a callback or a hook that the thread is in. It may be left by a jump, which nothing tells, so that nothing of
 * this lies on the stack. */
typedef struct {
    uint32_t serial;   /* 0: the thread is in none */
    const void *frame; /* of `enter` */
    bool was_left;     /* that frame is gone */
    meshcoll_t *mesh;  /* is restricted meanwhile; NULL: it is gone */
    meshcoll_request_t
        *request; /* whose callback it is; NULL: it has dealt with it, or it is a hook */
} inside_t;

/* Of a thread. */
typedef struct {
    meshcoll_request_t *first, *last; /* whose callbacks are due */
    uint32_t n_called;
    inside_t inside;
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
    mine.inside.request = NULL;
    if (!r->persistent)
        r->callback.function = NULL;
    mc_request_notify(r);
}

/* Calling and leaving ----------------------------------------------------------------------------- */

/* The thread is out of the call of that number, however it has left it. It holds no lock. */
static void leave(const uint32_t *serial)
{
    const inside_t left = mine.inside;
    if (left.serial == 0 || left.serial != *serial)
        return; /* that was noticed before */
    mc_lock(left.mesh);
    if (left.request)
        finish(left.request);
    if (left.mesh)
        left.mesh->n_restricted--;
    mc_unlock(left.mesh);
    mine.inside.serial = 0;
    atomic_fetch_sub_explicit(&mc_callbacks_n_due, 1, memory_order_relaxed);
}

/* Calls a function of the caller's: the callback of `r`, or the hook of `h`, and returns what that returns. The mesh is
 * restricted, and a callback due. An exception passes by `leave`, too (-fexceptions); longjmp does not. */
static int enter(meshcoll_t *h, meshcoll_request_t *r, const mc_callback_t *callback, int status)
{
    __attribute__((cleanup(leave))) uint32_t serial =
        ++mine.n_called ? mine.n_called : ++mine.n_called;
    mine.inside =
        (inside_t){.serial = serial, .frame = __builtin_frame_address(0), .mesh = h, .request = r};
    if (!r)
        return h->hook.function(h->hook.context);
    if (callback->function)
        callback->function(callback->context, r, status);
    return 0;
}

/* So that frames of it are those of this function, and not of a copy. */
static int (*const volatile enter_frame)(meshcoll_t *, meshcoll_request_t *, const mc_callback_t *,
                                         int) = enter;

enum { FRAME = 1024 }; /* the most that a frame of it takes */

static _Unwind_Reason_Code find_frame(struct _Unwind_Context *context, void *found)
{
    const uintptr_t begin = (uintptr_t)_Unwind_GetCFA(context); /* as it called the next one */
    const bool enters = _Unwind_GetRegionStart(context) == (uintptr_t)enter_frame;
    *(bool *)found = enters && (uintptr_t)mine.inside.frame - begin < FRAME;
    return *(bool *)found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Is the thread in a callback or a hook? `exactly`: by a walk up its stack, which takes microseconds; else one that was
 * left by longjmp may count until a caller calls from further up. */
static bool is_inside(bool exactly)
{
    inside_t *const in = &mine.inside;
    bool found = true;
    if (in->serial == 0 || in->was_left)
        return false;
    if ((uintptr_t)__builtin_frame_address(0) > (uintptr_t)in->frame)
        found = false;
    else if (exactly)
        _Unwind_Backtrace(find_frame, &found);
    in->was_left = !found;
    return found;
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
    (void)enter_frame(h, r, &callback, status);
}

bool mc_callbacks_are_mine(void)
{
    return (mine.first || mine.inside.serial) && !is_inside(mine.first);
}

void mc_callbacks_run(void)
{
    if (is_inside(mine.first))
        return;
    leave(&mine.inside.serial);
    for (meshcoll_request_t *r; (r = mine.first);) {
        mine.first = r->callback.next;
        call(r);
    }
}

int mc_callbacks_leave(int status)
{
    mc_callbacks_run();
    return status;
}

bool mc_callback_is_inside(void)
{
    return is_inside(true);
}

int mc_callback_check(const char *function)
{
    return is_inside(true) ? mc_fail(MESHCOLL_ERR_INVALID_ARG,
                                     "%s: a callback or a progress hook must not call what blocks; "
                                     "begin the call and let its own callback go on",
                                     function)
                           : MESHCOLL_OK;
}

bool mc_callback_leave(meshcoll_request_t *r)
{
    if (mine.inside.serial == 0 || mine.inside.request != r)
        return false;
    finish(r);
    return true;
}

bool mc_hook_run(meshcoll_t *h)
{
    if (is_inside(true))
        return false;
    h->n_restricted++;
    atomic_fetch_add_explicit(&mc_callbacks_n_due, 1, memory_order_relaxed);
    mc_unlock(h);
    leave(&mine.inside.serial);
    const bool moved = enter_frame(h, NULL, NULL, 0) != 0;
    mc_lock(h);
    return moved;
}
