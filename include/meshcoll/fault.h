/** @file
 * Faults: time limits, and ending a mesh; meshcoll.h includes this file. docs/troubleshooting.md says what happens
 * when ranks are late, stopped or gone, and who is told of it.
 */
#ifndef MESHCOLL_FAULT_H
#define MESHCOLL_FAULT_H

#include <meshcoll/datatypes.h>

#ifdef __cplusplus
extern "C" {
#endif

struct meshcoll;
struct meshcoll_params;
struct meshcoll_request;

/**
 * Ends a mesh, its sub-meshes and groups on all ranks: what runs on them, here and elsewhere, fails
 * with MESHCOLL_ERR_ABORTED and a sentence that names this rank and `why` (may be NULL), and
 * nothing runs on them any more. A rank that waits fails within a fraction of a second, one that
 * computes when it next waits. The first failure of a mesh counts; later ones change nothing. After
 * it meshcoll_destroy waits for nobody, on any rank, but for the end of a write to this rank's buffers.
 *
 * May be called by any thread at any time until meshcoll_destroy, also while others are in calls of
 * the mesh, but not in a signal handler. Returns when the other ranks are being told, within a
 * second: this process may end then. ERR_INVALID_ARG if `mesh` is NULL, ERR_UNSUPPORTED for a mesh
 * in one process.
 */
MESHCOLL_API int meshcoll_abort(struct meshcoll *mesh, const char *why);

/**
 * Makes a mesh of the ranks that are left of one that failed or was aborted; `mesh` is destroyed
 * afterwards as usual. All ranks that still live call it, and no other call. *survivors is the
 * caller's to destroy; its ranks are those of `mesh` in their order, without those that are gone
 * (see meshcoll_rank and meshcoll_size). A rank that is alive, but does not call within `seconds`
 * of the lowest one, is left out, and gets an error later. Where a network falls into parts, each
 * part that survives makes a mesh of its own.
 *
 * `params` (may be NULL) as for meshcoll_create_oob, except that the mesh is discovered where they
 * give none: MESHCOLL_MESH and an order are those of all ranks. Errors: those of meshcoll_create_oob;
 * ERR_INVALID_ARG if `mesh` works; ERR_UNSUPPORTED for a sub-mesh or group (shrink the mesh that
 * they are made from) and without monitors; ERR_TIMEOUT for a rank that is left out; ERR_PEER if
 * another rank ends meanwhile: call again.
 */
MESHCOLL_API int meshcoll_shrink(struct meshcoll *mesh, double seconds,
                                 const struct meshcoll_params *params, struct meshcoll **survivors);

/** @name Time limits
 * @{ */
/**
 * How long a request of this rank may run, in seconds; 0: without limit. A request that is not
 * complete by then fails its mesh with ERR_TIMEOUT, and meshcoll_last_error() names the rank that it
 * waited for, the call, the phase and the step. The limit of a mesh is that of
 * meshcoll_params_t.timeout; a sub-mesh begins with its parent's. A request has its mesh's, unless one
 * was set for it: that of a nonblocking call ends with the call, that of a persistent operation
 * holds for all its runs. Both also hold for requests that run already. Tagged messages count too.
 *
 * Only time in which this rank waits counts: in blocking calls and in meshcoll_wait, meshcoll_test
 * and the like, or in which its progress thread does. It is measured a few times per second, so that
 * a limit below 1 s is kept roughly. Not collective. ERR_INVALID_ARG if `seconds` is negative or the
 * request is no longer the caller's.
 */
MESHCOLL_API int meshcoll_set_timeout(struct meshcoll *mesh, double seconds);
MESHCOLL_API int meshcoll_set_request_timeout(struct meshcoll_request *request, double seconds);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
