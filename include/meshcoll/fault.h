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

/**
 * Ends a mesh, its sub-meshes and groups on all ranks: what runs on them, here and elsewhere, fails with
 * MESHCOLL_ERR_ABORTED and a sentence that names this rank and `why` (may be NULL), and nothing runs
 * on them any more. A rank that waits fails within a fraction of a second, one that computes when it
 * next waits. The first failure of a mesh counts; later ones change nothing. After it meshcoll_destroy
 * waits for nobody, on any rank.
 *
 * May be called by any thread at any time until meshcoll_destroy, also while others are in calls of the
 * mesh, but not in a signal handler. Returns when the other ranks are being told, within a second:
 * this process may end then. ERR_INVALID_ARG if `mesh` is NULL, ERR_UNSUPPORTED for a mesh in one process.
 */
MESHCOLL_API int meshcoll_abort(struct meshcoll *mesh, const char *why);

#ifdef __cplusplus
}
#endif

#endif
