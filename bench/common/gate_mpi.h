/* The gate of the ranks of MPI_COMM_WORLD. */
#ifndef BENCH_GATE_MPI_H
#define BENCH_GATE_MPI_H

#include "gate.h"

#include <mpi.h>

static inline void gate_mpi_allgather(void *context, const void *in, void *out, size_t bytes)
{
    (void)context;
    MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static inline void gate_mpi_poll(void *context)
{
    int any;
    (void)context;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
}

static inline bool gate_open_mpi(const char *path, gate_t **gate, char why[GATE_WHY])
{
    gate_ranks_t ranks = {.allgather = gate_mpi_allgather, .poll = gate_mpi_poll};
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
    return gate_open(&ranks, path, gate, why);
}

#endif
