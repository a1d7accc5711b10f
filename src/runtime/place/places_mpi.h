/* The places of an MPI communicator's ranks. */
#ifndef MC_RUNTIME_PLACES_MPI_H
#define MC_RUNTIME_PLACES_MPI_H

#include "runtime/place/places.h"

#include <mpi.h>

/* An allgather for meshcoll_oob_t; `context` is an MPI_Comm *. */
int mc_mpi_allgather(void *context, const void *in, void *out, size_t bytes);

/* By rank of `comm`; the caller frees it. Collective. */
int mc_mpi_places(MPI_Comm comm, mc_place_t **place);

#endif
