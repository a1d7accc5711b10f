/* Any MPI: compiled once against each library by peers.sh. */
#include "library.h"

#include <mpi.h>
#include <string.h>

static MPI_Request request = MPI_REQUEST_NULL;
static bool persistent;

void library_open(const char *mesh)
{
    (void)mesh;
}

void library_close(void)
{
}

void library_version(char *text, int room)
{
    char whole[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(whole, &length);
    snprintf(text, (size_t)room, "%s", whole);
}

static void run_blocking(const call_t *c)
{
    const MPI_Comm comm = MPI_COMM_WORLD;
    switch (c->kind) {
    case BCAST:
        MPI_Bcast(c->in ? c->in : c->out, c->count, MPI_FLOAT, 0, comm);
        return;
    case REDUCE:
        MPI_Reduce(c->in, c->out, c->count, MPI_FLOAT, MPI_SUM, 0, comm);
        return;
    case SCATTER:
        MPI_Scatter(c->in, c->count, MPI_FLOAT, c->out, c->count, MPI_FLOAT, 0, comm);
        return;
    case GATHER:
        MPI_Gather(c->in, c->count, MPI_FLOAT, c->out, c->count, MPI_FLOAT, 0, comm);
        return;
    case ALLGATHER:
        MPI_Allgather(c->in, c->count, MPI_FLOAT, c->out, c->count, MPI_FLOAT, comm);
        return;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(c->in, c->out, c->count, MPI_FLOAT, MPI_SUM, comm);
        return;
    case ALLTOALL:
        MPI_Alltoall(c->in, c->count, MPI_FLOAT, c->out, c->count, MPI_FLOAT, comm);
        return;
    case ALLREDUCE:
        MPI_Allreduce(c->in, c->out, c->count, MPI_FLOAT, MPI_SUM, comm);
        return;
    default:
        MPI_Barrier(comm);
    }
}

/* Open MPI 5.0 has the calls of MPI 4 and says that it is 3.1. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
static void init(const call_t *c)
{
    const MPI_Comm comm = MPI_COMM_WORLD;
    const MPI_Info info = MPI_INFO_NULL;
    const MPI_Datatype type = MPI_FLOAT;
    const int n = c->count;
    switch (c->kind) {
    case BCAST:
        MPI_Bcast_init(c->in ? c->in : c->out, n, type, 0, comm, info, &request);
        return;
    case REDUCE:
        MPI_Reduce_init(c->in, c->out, n, type, MPI_SUM, 0, comm, info, &request);
        return;
    case SCATTER:
        MPI_Scatter_init(c->in, n, type, c->out, n, type, 0, comm, info, &request);
        return;
    case GATHER:
        MPI_Gather_init(c->in, n, type, c->out, n, type, 0, comm, info, &request);
        return;
    case ALLGATHER:
        MPI_Allgather_init(c->in, n, type, c->out, n, type, comm, info, &request);
        return;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block_init(c->in, c->out, n, type, MPI_SUM, comm, info, &request);
        return;
    case ALLTOALL:
        MPI_Alltoall_init(c->in, n, type, c->out, n, type, comm, info, &request);
        return;
    case ALLREDUCE:
        MPI_Allreduce_init(c->in, c->out, n, type, MPI_SUM, comm, info, &request);
        return;
    default:
        MPI_Barrier_init(comm, info, &request);
    }
}
#else
static void init(const call_t *c)
{
    (void)c;
    die("this MPI has no persistent collectives", "");
}
#endif

void library_prepare(const call_t *call, bool wanted)
{
    persistent = wanted;
    if (persistent)
        init(call);
}

void library_run(const call_t *call)
{
    if (!persistent) {
        run_blocking(call);
        return;
    }
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void library_done(void)
{
    if (persistent)
        MPI_Request_free(&request);
}

void library_print(FILE *to)
{
    (void)to;
}

void library_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

void library_share(char *one)
{
    MPI_Bcast(one, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
}
