/** @file
 * Failures; meshcoll.h includes this file. docs/faults.md says who is told of what.
 */
#ifndef MESHCOLL_FAULT_H
#define MESHCOLL_FAULT_H

#include <meshcoll/datatypes.h>

#ifdef __cplusplus
extern "C" {
#endif

struct meshcoll;
struct meshcoll_params;

/**
 * Ends a mesh, its sub-meshes and groups on all ranks: what runs on them, here and elsewhere, fails
 * with MESHCOLL_ERR_ABORTED and a sentence that names this rank and `why` (may be NULL), and
 * nothing runs on them any more. A rank that waits fails within a fraction of a second, one that
 * computes when it next waits. The first failure of a mesh counts; later ones change nothing. After
 * it meshcoll_destroy waits for nobody, on any rank.
 *
 * May be called by any thread at any time until meshcoll_destroy, also while others are in calls of
 * the mesh, but not in a signal handler. Returns when the other ranks are being told, within a
 * second: this process may end then. ERR_INVALID_ARG if `mesh` is NULL, ERR_UNSUPPORTED for a mesh
 * in one process.
 */
MESHCOLL_API int meshcoll_abort(struct meshcoll *mesh, const char *why);

/**
 * Makes a mesh of the ranks that are left of one that failed or was aborted; `mesh` is destroyed
 * afterwards, as ever. All ranks that still live call it, and no other call. *survivors is the
 * caller's to destroy; its ranks are those of `mesh` in their order, without those that are gone
 * (meshcoll_rank and meshcoll_size tell). A rank that is alive, but does not call within `seconds`
 * of the lowest one, is left out, and gets an error later. Where a network falls into parts, each
 * part that survives makes a mesh of its own.
 *
 * `params` (may be NULL) as for meshcoll_create_oob, except that the mesh is discovered where they
 * give none: MESHCOLL_MESH is that of all ranks. Errors: those of meshcoll_create_oob;
 * ERR_INVALID_ARG if `mesh` works; ERR_UNSUPPORTED for a sub-mesh or group (shrink the mesh that
 * they are made from) and without monitors; ERR_PEER if another rank ends meanwhile: call again.
 */
MESHCOLL_API int meshcoll_shrink(struct meshcoll *mesh, double seconds,
                                 const struct meshcoll_params *params, struct meshcoll **survivors);

#ifdef __cplusplus
}
#endif

#endif
