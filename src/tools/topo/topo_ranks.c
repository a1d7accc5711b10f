/* The ranks of the job that this process belongs to. */
#include "tools/topo/topo.h"

#include "job/bootstrap/bootstrap.h"
#include "job/environment/launcher.h"

#include <stdlib.h>

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
    return mc_variable("OMPI_COMM_WORLD_SIZE") || mc_variable("PMIX_RANK") ||
           mc_variable("PMI_SIZE");
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

static void close_job(mc_ranks_t *ranks)
{
    mc_bootstrap_close(ranks->oob.context);
}

static int open_job(mc_ranks_t *ranks)
{
    mc_bootstrap_t *bootstrap;
    const int status = mc_bootstrap_open_env(&bootstrap);
    if (!status)
        *ranks = (mc_ranks_t){.oob = mc_bootstrap_oob(bootstrap), .close = close_job};
    return status;
}

/* Variables that contradict each other are a launcher's, too: mc_ranks_open says what is wrong. */
bool mc_ranks_launched(void)
{
    mc_launcher_id_t launcher;
    int32_t rank, size;
    return by_mpi() || mc_launcher_find(&launcher, &rank, &size) || launcher != MC_NO_LAUNCHER;
}

/* torchrun may run under mpirun, and says where rank 0 is. */
int mc_ranks_open(mc_ranks_t *ranks)
{
    mc_launcher_id_t launcher;
    int32_t rank, size;
    int status = mc_launcher_find(&launcher, &rank, &size);
    if (status)
        return status;
    if (!by_mpi() || launcher == MC_TORCHRUN)
        return open_job(ranks);
    status = open_mpi(ranks);
    if (status || ranks->oob.size > 1 || size == 1)
        return status;
    ranks->close(ranks);
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "MPI has one process, but this is rank %d of %d by %s and %s: this MPI does not "
                   "know its launcher; start the command with mpirun",
                   rank, size, mc_launchers[launcher].rank, mc_launchers[launcher].size);
}
