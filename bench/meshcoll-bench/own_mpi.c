/* The MPI library's own collectives on the same buffers. */
#include "bench.h"

#include <limits.h>

static MPI_Datatype type_of(meshcoll_datatype_t datatype)
{
    switch (datatype) {
    case MESHCOLL_FLOAT32:
        return MPI_FLOAT;
    case MESHCOLL_FLOAT64:
        return MPI_DOUBLE;
    case MESHCOLL_INT32:
        return MPI_INT32_T;
    default:
        return MPI_INT64_T;
    }
}

static MPI_Op op_of(meshcoll_op_t op)
{
    switch (op) {
    case MESHCOLL_MIN:
        return MPI_MIN;
    case MESHCOLL_MAX:
        return MPI_MAX;
    default:
        return MPI_SUM;
    }
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
