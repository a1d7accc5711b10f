/** @file
 * meshcoll over an MPI communicator: the library meshcoll-mpi, which is linked besides meshcoll. It is
 * built for one MPI, Open MPI; those for others are called meshcoll-mpich, meshcoll-impi (Intel MPI)
 * and meshcoll-mvapich.
 * MPI is used while a mesh is created and destroyed, to exchange addresses, and by calls that wait,
 * to keep MPI's messages moving; through its profiling interface (PMPI_…).
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
 * meshcoll_destroy, before MPI_Finalize.
 *
 * Unless `params` has a hook, calls that wait for other ranks now and then call MPI_Iprobe, so that
 * MPI's messages move on meanwhile: in any thread with MPI_THREAD_MULTIPLE, in the main thread alone
 * with MPI_THREAD_SINGLE and FUNNELED, and not at all with SERIALIZED, where another thread may be
 * in MPI. A hook that returns 0 at once switches that off.
 *
 * Errors: ERR_INVALID_ARG for an inter-communicator, where the program runs another MPI than the
 * library is built for, where MPI is not initialised, or where
 * MPI_COMM_WORLD has one process but the variables of a launcher (see meshcoll_env) tell of more;
 * those of meshcoll_create_oob.
 */
MESHCOLL_API int meshcoll_create(MPI_Comm comm, const meshcoll_params_t *params, meshcoll_t **mesh);

#ifdef __cplusplus
}
#endif

#endif
