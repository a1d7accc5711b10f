/* The MPI library's own collectives on the same buffers. */
#include "bench.h"

#include <limits.h>

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

const char *own_mpi_lacks(const options_t *o)
{
    if (type_of(o->datatype) == MPI_DATATYPE_NULL)
        return meshcoll_datatype_name(o->datatype);
    if (collective_reduces(o->collective) && op_of(o->op) == MPI_OP_NULL)
        return meshcoll_op_name(o->op);
    return NULL;
}

bool own_mpi_fits(const bench_t *bench, size_t whole)
{
    return !bench->options.flat_mpi || whole <= INT_MAX;
}

view_t own_mpi_view(const bench_t *bench, const view_t *view)
{
    const options_t *const o = &bench->options;
    view_t mine = *view;
    if (o->collective == MESHCOLL_BCAST && !o->in_place && bench->rank == o->root)
        mine.out.at = NULL;
    if (o->collective == MESHCOLL_REDUCE_SCATTER && o->in_place)
        mine.out.at = view->in.at;
    return mine;
}

void own_mpi_run(const bench_t *bench, const view_t *view)
{
    const options_t *const o = &bench->options;
    const MPI_Datatype type = type_of(o->datatype);
    const MPI_Op op = op_of(o->op);
    const MPI_Comm comm = MPI_COMM_WORLD;
    const int n = (int)view->count;
    const bool same = o->in_place && view->in.at && view->out.at;
    const void *const in = same ? MPI_IN_PLACE : view->in.at;
    void *const out = view->out.at;

    if (o->barrier) {
        MPI_Barrier(comm);
        return;
    }
    switch (o->collective) {
    case MESHCOLL_BCAST:
        MPI_Bcast(view->in.at ? view->in.at : out, n, type, o->root, comm);
        return;
    case MESHCOLL_REDUCE:
        MPI_Reduce(in, out, n, type, op, o->root, comm);
        return;
    case MESHCOLL_SCATTER:
        MPI_Scatter(view->in.at, n, type, same ? MPI_IN_PLACE : out, n, type, o->root, comm);
        return;
    case MESHCOLL_GATHER:
        MPI_Gather(in, n, type, out, n, type, o->root, comm);
        return;
    case MESHCOLL_ALLGATHER:
        MPI_Allgather(in, n, type, out, n, type, comm);
        return;
    case MESHCOLL_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(in, out, n, type, op, comm);
        return;
    case MESHCOLL_ALLTOALL:
        MPI_Alltoall(in, n, type, out, n, type, comm);
        return;
    default:
        MPI_Allreduce(in, out, n, type, op, comm);
    }
}
