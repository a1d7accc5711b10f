/** @file
 * meshcoll from an MPI communicator. MPI is used for the start only: addresses, and who shares a box.
 */
#ifndef MESHCOLL_MPI_H
#define MESHCOLL_MPI_H

#include <mpi.h>

#include <meshcoll/meshcoll.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Collective over `comm`, which stays the caller's and must outlive the handle. Without a mesh text
 * the ranks are grouped into boxes by what they can see (MPI_COMM_TYPE_SHARED); boxes of unequal
 * sizes make a mesh like box=8+8+4. `params` may be NULL.
 * Free with meshcoll_destroy. Errors: those of meshcoll_create_oob.
 */
MESHCOLL_API int meshcoll_create(MPI_Comm comm, const meshcoll_params_t *params, meshcoll_t **mesh);

#ifdef __cplusplus
}
#endif

#endif
