#include "own_mpi.h"

#include <mpi.h>

#include <stdio.h>
#include <string.h>

/* MPI_DATATYPE_NULL where MPI has none. */
static MPI_Datatype type_of(meshcoll_datatype_t datatype)
{
    switch (datatype) {
    case MESHCOLL_FLOAT32:
        return MPI_FLOAT;
    case MESHCOLL_FLOAT64:
        return MPI_DOUBLE;
    case MESHCOLL_INT8:
        return MPI_INT8_T;
    case MESHCOLL_INT16:
        return MPI_INT16_T;
    case MESHCOLL_INT32:
        return MPI_INT32_T;
    case MESHCOLL_INT64:
        return MPI_INT64_T;
    case MESHCOLL_UINT8:
        return MPI_UINT8_T;
    case MESHCOLL_UINT16:
        return MPI_UINT16_T;
    case MESHCOLL_UINT32:
        return MPI_UINT32_T;
    case MESHCOLL_UINT64:
        return MPI_UINT64_T;
    case MESHCOLL_COMPLEX64:
        return MPI_C_FLOAT_COMPLEX;
    case MESHCOLL_COMPLEX128:
        return MPI_C_DOUBLE_COMPLEX;
    case MESHCOLL_FLOAT32_INT32:
        return MPI_FLOAT_INT;
    case MESHCOLL_FLOAT64_INT32:
        return MPI_DOUBLE_INT;
    case MESHCOLL_INT32_INT32:
        return MPI_2INT;
    case MESHCOLL_INT64_INT32:
        return sizeof(long) == sizeof(int64_t) ? MPI_LONG_INT : MPI_DATATYPE_NULL;
    default:
        return MPI_DATATYPE_NULL;
    }
}

static MPI_Op op_of(meshcoll_op_t op)
{
    switch (op) {
    case MESHCOLL_SUM:
        return MPI_SUM;
    case MESHCOLL_MIN:
        return MPI_MIN;
    case MESHCOLL_MAX:
        return MPI_MAX;
    case MESHCOLL_PROD:
        return MPI_PROD;
    case MESHCOLL_LAND:
        return MPI_LAND;
    case MESHCOLL_LOR:
        return MPI_LOR;
    case MESHCOLL_LXOR:
        return MPI_LXOR;
    case MESHCOLL_BAND:
        return MPI_BAND;
    case MESHCOLL_BOR:
        return MPI_BOR;
    case MESHCOLL_BXOR:
        return MPI_BXOR;
    case MESHCOLL_MINLOC:
        return MPI_MINLOC;
    case MESHCOLL_MAXLOC:
        return MPI_MAXLOC;
    default:
        return MPI_OP_NULL;
    }
}

static bool has_datatype(meshcoll_datatype_t datatype)
{
    return type_of(datatype) != MPI_DATATYPE_NULL;
}

static bool has_op(meshcoll_op_t op)
{
    return op_of(op) != MPI_OP_NULL;
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void poll_messages(void)
{
    int any;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
}

static void run(const own_mpi_call_t *c)
{
    const MPI_Datatype type = type_of(c->datatype);
    const MPI_Op op = op_of(c->op);
    const MPI_Comm comm = MPI_COMM_WORLD;
    const int n = (int)c->count;
    const bool same = c->in_place && c->in && c->out;
    const void *const in = same ? MPI_IN_PLACE : c->in;

    if (c->barrier) {
        MPI_Barrier(comm);
        return;
    }
    switch (c->collective) {
    case MESHCOLL_BCAST:
        MPI_Bcast(c->in ? c->in : c->out, n, type, c->root, comm);
        return;
    case MESHCOLL_REDUCE:
        MPI_Reduce(in, c->out, n, type, op, c->root, comm);
        return;
    case MESHCOLL_SCATTER:
        MPI_Scatter(c->in, n, type, same ? MPI_IN_PLACE : c->out, n, type, c->root, comm);
        return;
    case MESHCOLL_GATHER:
        MPI_Gather(in, n, type, c->out, n, type, c->root, comm);
        return;
    case MESHCOLL_ALLGATHER:
        MPI_Allgather(in, n, type, c->out, n, type, comm);
        return;
    case MESHCOLL_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(in, c->out, n, type, op, comm);
        return;
    case MESHCOLL_ALLTOALL:
        MPI_Alltoall(in, n, type, c->out, n, type, comm);
        return;
    default:
        MPI_Allreduce(in, c->out, n, type, op, comm);
    }
}

static bool start(int *rank, int *size, char version[OWN_MPI_VERSION])
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return false;
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0'; /* some libraries answer with a page */
    for (char *at = text; *at; at++)
        if (*at == '\t')
            *at = ' ';
    snprintf(version, OWN_MPI_VERSION, "%.*s", OWN_MPI_VERSION - 1, text);
    return true;
}

static void stop(void)
{
    MPI_Finalize();
}

__attribute__((visibility("default"))) const own_mpi_t *meshcoll_bench_mpi(void);
const own_mpi_t *meshcoll_bench_mpi(void)
{
    static const own_mpi_t table = {.open = start,
                                    .close = stop,
                                    .has_datatype = has_datatype,
                                    .has_op = has_op,
                                    .barrier = barrier,
                                    .poll = poll_messages,
                                    .run = run};
    return &table;
}
