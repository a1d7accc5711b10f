/** @file
 * meshcoll over an MPI communicator: the library meshcoll-mpi, which is linked besides meshcoll.
 * MPI is used only while a mesh is created and destroyed, to exchange addresses, and through its
 * profiling interface (PMPI_…).
 */
#ifndef MESHCOLL_MPI_H
#define MESHCOLL_MPI_H

#include <mpi.h>

#include <meshcoll/meshcoll.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates a mesh from an intra-communicator. Collective over `comm`, which stays the caller's and
 * must outlive the handle. `params` may be NULL. *mesh is the caller's to destroy with
 * meshcoll_destroy, before MPI_Finalize. Errors: ERR_INVALID_ARG for an inter-communicator, or where
 * MPI is not initialised; those of meshcoll_create_oob.
 */
MESHCOLL_API int meshcoll_create(MPI_Comm comm, const meshcoll_params_t *params, meshcoll_t **mesh);

#ifdef __cplusplus
}
#endif

#endif
