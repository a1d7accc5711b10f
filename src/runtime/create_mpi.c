/* Creation from an MPI communicator: MPI gathers, and knows which ranks share memory. */
#include <meshcoll/mpi.h>

#include "runtime/tuned.h"

#include <limits.h>
#include <stdlib.h>

static int mpi_allgather(void *context, const void *in, void *out, size_t bytes)
{
    const MPI_Comm *const comm = context;
    if (bytes > INT_MAX)
        return 1;
    return MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, *comm) != MPI_SUCCESS;
}

/* The lowest rank that shares memory with each rank. */
static int find_machines(MPI_Comm comm, int32_t rank, int32_t *machine)
{
    MPI_Comm box;
    int32_t lowest = rank;
    int failed = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &box);
    if (!failed) {
        /* ordered by rank in comm: box rank 0 is the lowest */
        failed = MPI_Bcast(&lowest, 1, MPI_INT32_T, 0, box);
        MPI_Comm_free(&box);
    }
    if (!failed)
        failed = MPI_Allgather(&lowest, 1, MPI_INT32_T, machine, 1, MPI_INT32_T, comm);
    return failed ? mc_fail(MESHCOLL_ERR_TRANSPORT, "MPI cannot tell which ranks share a machine")
                  : MESHCOLL_OK;
}

static int create(MPI_Comm *comm, mc_creation_t *creation, int32_t *machine, meshcoll_t **mesh)
{
    creation->oob = (meshcoll_oob_t){.context = comm, .allgather = mpi_allgather};
    MPI_Comm_rank(*comm, &creation->oob.rank);
    MPI_Comm_size(*comm, &creation->oob.size);
    const int status = find_machines(*comm, creation->oob.rank, machine);
    return status ? status : mc_tuned_create(creation, mesh);
}

int meshcoll_create(MPI_Comm comm, const meshcoll_params_t *params, meshcoll_t **mesh)
{
    int ready = 0, size = 0;
    if (MPI_Initialized(&ready) != MPI_SUCCESS || !ready || comm == MPI_COMM_NULL || !mesh)
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "meshcoll_create: expected MPI to be initialised, a communicator and a place "
            "for the mesh");
    MPI_Comm_size(comm, &size);
    MPI_Comm *const own = malloc(sizeof *own);
    int32_t *const machine = calloc((size_t)size, sizeof *machine);
    int status = own && machine ? MESHCOLL_OK : mc_fail_memory("a mesh");
    if (!status) {
        *own = comm;
        mc_creation_t creation = {.machine = machine, .params = params, .free_context = free};
        status = create(own, &creation, machine, mesh);
    }
    free(machine);
    if (status)
        free(own);
    return status;
}
