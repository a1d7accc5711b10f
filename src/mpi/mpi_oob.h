/* The out-of-band allgather of an MPI communicator. */
#ifndef MC_MPI_OOB_H
#define MC_MPI_OOB_H

#include <meshcoll/mpi.h>

/* The context is the communicator itself, which must outlive it; nothing needs a free. */
meshcoll_oob_t mc_mpi_oob(MPI_Comm comm);

#endif
