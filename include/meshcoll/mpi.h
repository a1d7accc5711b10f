/** @file
 * meshcoll over an MPI communicator. MPI is used only while a mesh is created and destroyed: to
 * find the ranks of a box, and to exchange addresses.
 */
#ifndef MESHCOLL_MPI_H
#define MESHCOLL_MPI_H

#include <mpi.h>

#include <meshcoll/meshcoll.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates a mesh from a communicator. Collective over `comm`, which stays the caller's and must
 * outlive the handle. Unless the mesh is given, ranks that can share memory (MPI_COMM_TYPE_SHARED)
 * form boxes; boxes of unequal sizes make a mesh such as box=8+8+4. `params` may be NULL. *mesh is
 * the caller's to destroy with meshcoll_destroy. Errors: those of meshcoll_create_oob.
 */
MESHCOLL_API int meshcoll_create(MPI_Comm comm, const meshcoll_params_t *params, meshcoll_t **mesh);

#ifdef __cplusplus
}
#endif

#endif
