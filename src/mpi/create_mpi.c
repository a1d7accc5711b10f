/*
 * libmeshcoll-mpi: creates a mesh from an MPI communicator. It uses the public API of libmeshcoll only. PMPI_ functions,
 * so that a tool which intercepts MPI, or an MPI that is built on meshcoll, does not see or recurse into these calls.
 */
#include "mpi/hook_mpi.h"
#include "mpi/mpi_oob.h"

#include <meshcoll/env.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A pointer in Open MPI, an int in MPICH. */
_Static_assert(sizeof(MPI_Comm) <= sizeof(void *), "a communicator fits into a context");

static int allgather(void *context, const void *in, void *out, size_t bytes)
{
    MPI_Comm comm;
    memcpy(&comm, &context, sizeof comm);
    if (bytes > INT_MAX)
        return 1;
    return PMPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, comm) != MPI_SUCCESS;
}

meshcoll_oob_t mc_mpi_oob(MPI_Comm comm)
{
    meshcoll_oob_t oob = {.allgather = allgather};
    memcpy(&oob.context, &comm, sizeof comm);
    PMPI_Comm_rank(comm, &oob.rank);
    PMPI_Comm_size(comm, &oob.size);
    return oob;
}

#ifdef OPEN_MPI
#define BUILT_FOR "Open MPI"
#else
#define BUILT_FOR "MPICH"
#endif

/* A program of another MPI than this library's has communicators of another kind: that is told before the first of them is
 * used. Names of neither kind pass. */
static int check_library(void)
{
    enum { ROOM = 8193, SHOWN = 60 }; /* MPICH's versions are longer than this MPI may know */
    static const struct {
        const char *name, *built_for;
    } known[] = {{"Open MPI", "Open MPI"},
                 {"Spectrum MPI", "Open MPI"},
                 {"MPICH", "MPICH"},
                 {"Intel(R) MPI", "MPICH"},
                 {"MVAPICH", "MPICH"}};
    char *const version = calloc(1, ROOM), why[400];
    int length = 0, status = MESHCOLL_OK;
    if (!version)
        return meshcoll_fail(MESHCOLL_ERR_NO_MEMORY, "out of memory: the version of MPI");
    PMPI_Get_library_version(version, &length);
    for (char *at = version; (at = strchr(at, '\t')) != NULL;)
        *at = ' ';
    for (size_t i = 0; i < sizeof known / sizeof *known && !status; i++) {
        if (!strstr(version, known[i].name))
            continue;
        if (strcmp(known[i].built_for, BUILT_FOR) == 0)
            break;
        snprintf(
            why, sizeof why,
            "meshcoll_create: this library of meshcoll is built for " BUILT_FOR
            ", and the program runs \"%.*s\": link it with meshcoll-mpi where MPI is Open MPI, "
            "else meshcoll-mpich, meshcoll-impi or meshcoll-mvapich, built with "
            "-DMPI_C_COMPILER=mpicc of that MPI (README.md)",
            (int)(strcspn(version, ",\n") < SHOWN ? strcspn(version, ",\n") : SHOWN), version);
        status = meshcoll_fail(MESHCOLL_ERR_INVALID_ARG, why);
    }
    free(version);
    return status;
}

static int check_comm(MPI_Comm comm)
{
    int inter = 0;
    if (PMPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && !inter)
        return MESHCOLL_OK;
    return meshcoll_fail(
        MESHCOLL_ERR_INVALID_ARG,
        "meshcoll_create: expected an intra-communicator, got an inter-communicator; "
        "MPI_Intercomm_merge merges its two groups into one");
}

/* MPI starts with one process where a launcher that it does not know has started several. */
static int check_alone(MPI_Comm comm)
{
    int relation, processes, rank, size;
    PMPI_Comm_size(comm, &processes);
    if (PMPI_Comm_compare(comm, MPI_COMM_WORLD, &relation) != MPI_SUCCESS ||
        relation != MPI_IDENT || processes > 1)
        return MESHCOLL_OK;
    const int status = meshcoll_env(&rank, &size);
    if (status || size == 1)
        return status;
    char why[240];
    snprintf(why, sizeof why,
             "meshcoll_create: MPI_COMM_WORLD has one process, but this is rank %d of %d by the "
             "variables of its launcher: start an MPI program with mpirun, or with a launcher that "
             "this MPI knows",
             rank, size);
    return meshcoll_fail(MESHCOLL_ERR_INVALID_ARG, why);
}

int meshcoll_create(MPI_Comm comm, const meshcoll_params_t *params, meshcoll_t **mesh)
{
    int initialized = 0, finalized = 0, status = check_library();
    if (status)
        return status;
    PMPI_Initialized(&initialized);
    PMPI_Finalized(&finalized);
    if (!initialized || finalized || comm == MPI_COMM_NULL || !mesh)
        return meshcoll_fail(MESHCOLL_ERR_INVALID_ARG,
                             "meshcoll_create: expected MPI to be initialised and not finalised, a "
                             "communicator and a pointer to a mesh");
    status = check_comm(comm); /* the same on all ranks */
    if (!status)
        status = check_alone(comm);
    if (status)
        return status;
    const meshcoll_oob_t oob = mc_mpi_oob(comm);
    const meshcoll_params_t with_hook = mc_mpi_params(params);
    return meshcoll_create_oob(&oob, &with_hook, mesh);
}
