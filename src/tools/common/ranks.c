#include "tools/common/ranks.h"

#include <stdlib.h>
#include <string.h>

#ifdef MESHCOLL_HAVE_MPI
#include "mpi/mpi_oob.h"

static void close_mpi(mc_ranks_t *ranks)
{
    (void)ranks;
    MPI_Finalize();
}

/* By Open MPI, another with PMIx, or with PMI (MPICH and its kin). */
static bool by_mpi(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") || getenv("PMI_SIZE");
}

static int open_mpi(mc_ranks_t *ranks)
{
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "MPI does not start; run it under mpirun");
    *ranks = (mc_ranks_t){.oob = mc_mpi_oob(MPI_COMM_WORLD), .close = close_mpi};
    return MESHCOLL_OK;
}
#else
static bool by_mpi(void)
{
    return false;
}

static int open_mpi(mc_ranks_t *ranks)
{
    (void)ranks;
    return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "this command was built without MPI");
}
#endif

static int gather_alone(void *context, const void *in, void *out, size_t bytes)
{
    (void)context;
    memcpy(out, in, bytes);
    return 0;
}

static void close_alone(mc_ranks_t *ranks)
{
    (void)ranks;
}

bool mc_ranks_launched(void)
{
    return by_mpi();
}

int mc_ranks_open(mc_ranks_t *ranks)
{
    if (by_mpi())
        return open_mpi(ranks);
    *ranks = (mc_ranks_t){.oob = {.size = 1, .allgather = gather_alone}, .close = close_alone};
    return MESHCOLL_OK;
}
