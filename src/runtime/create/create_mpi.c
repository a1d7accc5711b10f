/* Creates a mesh from an MPI communicator: MPI gathers, and tells which ranks share memory. */
#include <meshcoll/mpi.h>

#include "base/gather.h"
#include "runtime/create/tuned.h"
#include "runtime/place/places_mpi.h"

#include <limits.h>
#include <stdlib.h>

int mc_mpi_allgather(void *context, const void *in, void *out, size_t bytes)
{
    const MPI_Comm *const comm = context;
    if (bytes > INT_MAX)
        return 1;
    return MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, *comm) != MPI_SUCCESS;
}

/* By rank: the lowest rank that shares memory with it. */
static int find_machines(MPI_Comm comm, int32_t rank, int32_t *machine)
{
    MPI_Comm box;
    int32_t lowest = rank;
    int failed = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &box);
    if (!failed) {
        /* `box` is ordered by rank in comm, so its rank 0 is the lowest */
        failed = MPI_Bcast(&lowest, 1, MPI_INT32_T, 0, box);
        MPI_Comm_free(&box);
    }
    if (!failed)
        failed = MPI_Allgather(&lowest, 1, MPI_INT32_T, machine, 1, MPI_INT32_T, comm);
    return failed ? mc_fail(MESHCOLL_ERR_TRANSPORT, "MPI cannot tell which ranks share a machine")
                  : MESHCOLL_OK;
}

int mc_mpi_places(MPI_Comm comm, mc_place_t **place)
{
    meshcoll_oob_t oob = {.context = &comm, .allgather = mc_mpi_allgather};
    MPI_Comm_rank(comm, &oob.rank);
    MPI_Comm_size(comm, &oob.size);
    int32_t *const machine = calloc((size_t)oob.size, sizeof *machine);
    int status = mc_agree(&oob, machine ? MESHCOLL_OK : mc_fail_memory("a table of machines"));
    if (!status)
        status = find_machines(comm, oob.rank, machine);
    if (!status)
        status = mc_places_find(&oob, machine, place);
    free(machine);
    return status;
}

static int check_comm(MPI_Comm comm)
{
    int inter = 0;
    if (MPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && !inter)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "meshcoll_create: expected an intra-communicator, got an inter-communicator; "
                   "MPI_Intercomm_merge merges its two groups into one");
}

int meshcoll_create(MPI_Comm comm, const meshcoll_params_t *params, meshcoll_t **mesh)
{
    int ready = 0;
    if (MPI_Initialized(&ready) != MPI_SUCCESS || !ready || comm == MPI_COMM_NULL || !mesh)
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "meshcoll_create: expected MPI to be initialised, a communicator and a pointer "
            "to a mesh");
    int status = check_comm(comm); /* the same on all ranks */
    if (status)
        return status;
    MPI_Comm *const own = malloc(sizeof *own);
    meshcoll_oob_t oob = {.context = &comm, .allgather = mc_mpi_allgather};
    MPI_Comm_rank(comm, &oob.rank);
    MPI_Comm_size(comm, &oob.size);
    mc_place_t *place = NULL;
    status = mc_agree(&oob, own ? MESHCOLL_OK : mc_fail_memory("a mesh"));
    if (!status)
        status = mc_mpi_places(comm, &place);
    if (!status) {
        *own = comm;
        oob.context = own;
        const mc_creation_t creation = {
            .oob = oob, .place = place, .params = params, .free_context = free};
        status = mc_tuned_create(&creation, mesh);
    }
    free(place);
    if (status)
        free(own);
    return status;
}
