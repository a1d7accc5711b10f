/** @file
 * The functions of the program that meshcoll calls while it progresses. Included by meshcoll.h.
 */
#ifndef MESHCOLL_CALLBACK_H
#define MESHCOLL_CALLBACK_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MESHCOLL_API __attribute__((visibility("default")))
#else
#define MESHCOLL_API
#endif

struct meshcoll_request;

/**
 * A function that calls run while they wait for other ranks, so that messages of the program's that
 * the library does not know of move on too: those of MPI, by MPI_Iprobe or MPI_Testsome, or of
 * another library. Returns 0 if nothing has moved, and anything else if something has: the waiting
 * rank then stays awake.
 *
 * Blocking collectives, meshcoll_barrier, meshcoll_send and _recv, meshcoll_wait, _waitall and
 * _waitany, meshcoll_group_end, meshcoll_split and the destruction of a sub-mesh run it, in the
 * calling thread, once they have polled for some microseconds in vain: every few yields, then before
 * each of their sleeps, which grow from 1 to 10 ms. meshcoll_create and the destruction of other
 * meshes do not: they wait in the out-of-band allgather. The function must not block. Calls of
 * meshcoll that do not block are allowed inside; what blocks on this mesh returns ERR_INVALID_ARG.
 * An exception or longjmp may leave it, as it may leave a callback (meshcoll_callback_t).
 */
typedef int (*meshcoll_hook_t)(void *context);

/**
 * A function that is called when a request is complete: `status` is MESHCOLL_OK, or the error of its
 * run, which meshcoll_last_error() describes inside. `request` is that of meshcoll_set_callback.
 *
 * It runs in whichever thread has progressed the request (one that waits, tests or calls on any
 * mesh, or the progress thread), with no lock of the library held. Inside, everything that does not
 * block is allowed: beginning calls, starting and freeing requests, and testing this one, which is
 * complete and which meshcoll_free then frees. What blocks is refused on this mesh with
 * ERR_INVALID_ARG (collectives, waits for what is not complete, the end of a group, split), and
 * must not be called on others. Calls begun inside count in the order of calls of their mesh, which
 * must be the same on all ranks. meshcoll_destroy frees a mesh when the callback has returned, but
 * not the last one that shares connections, and none with calls on device memory: these would wait,
 * and stay (a line in the log and meshcoll_last_error() say so).
 *
 * An exception or longjmp may leave it, but not for a progress thread, whose stack ends there, and
 * not while this thread creates, splits or destroys a mesh or waits in a call on device memory. The
 * callback is over then. So is the call of the library that called it: what that waited for goes
 * on, and needs its buffers until the mesh is destroyed; a request still has to be waited for.
 */
typedef void (*meshcoll_callback_t)(void *context, struct meshcoll_request *request, int status);

/**
 * Sets the callback of a request, once for each run; `context` is passed to it and stays the
 * caller's. Of a nonblocking call: set right after it has begun, and called before this function
 * returns if the call is complete already. Of a persistent request: for the present run and all
 * later ones, until NULL is set; a run that is complete is not called for.
 *
 * The callback is called exactly once per run, before a wait or test in any thread returns the
 * completion, which the owner still collects by a wait or test, or gives up by meshcoll_free; a
 * request that was freed while it ran is called for as well. So is one that still runs when its
 * mesh is destroyed: with ERR_INVALID_ARG, and only meshcoll_free is allowed inside. A request that
 * its callback frees must not be waited for. ERR_INVALID_ARG if `request` is NULL or not the
 * caller's.
 */
MESHCOLL_API int meshcoll_set_callback(struct meshcoll_request *request,
                                       meshcoll_callback_t callback, void *context);

#ifdef __cplusplus
}
#endif

#endif
