#include "support/call.h"

static int call_blocks(meshcoll_t *mesh, const meshcoll_args_t *a)
{
    switch (a->collective) {
    case MESHCOLL_SCATTER:
        return meshcoll_scatterv(mesh, a->in, a->counts, a->displs, a->out, a->count, a->datatype,
                                 a->root);
    case MESHCOLL_GATHER:
        return meshcoll_gatherv(mesh, a->in, a->count, a->out, a->counts, a->displs, a->datatype,
                                a->root);
    case MESHCOLL_ALLGATHER:
        return meshcoll_allgatherv(mesh, a->in, a->count, a->out, a->counts, a->displs,
                                   a->datatype);
    case MESHCOLL_REDUCE_SCATTER:
        return meshcoll_reduce_scatterv(mesh, a->in, a->out, a->counts, a->datatype, a->op);
    case MESHCOLL_ALLTOALL:
        return meshcoll_alltoallv(mesh, a->in, a->in_counts, a->in_displs, a->out, a->counts,
                                  a->displs, a->datatype);
    default:
        return MESHCOLL_ERR_INVALID_ARG;
    }
}

int mc_call(meshcoll_t *mesh, const meshcoll_args_t *a)
{
    if (a->counts)
        return call_blocks(mesh, a);
    switch (a->collective) {
    case MESHCOLL_BCAST:
        return meshcoll_bcast(mesh, a->in, a->out, a->count, a->datatype, a->root);
    case MESHCOLL_REDUCE:
        return meshcoll_reduce(mesh, a->in, a->out, a->count, a->datatype, a->op, a->root);
    case MESHCOLL_SCATTER:
        return meshcoll_scatter(mesh, a->in, a->out, a->count, a->datatype, a->root);
    case MESHCOLL_GATHER:
        return meshcoll_gather(mesh, a->in, a->out, a->count, a->datatype, a->root);
    case MESHCOLL_ALLGATHER:
        return meshcoll_allgather(mesh, a->in, a->out, a->count, a->datatype);
    case MESHCOLL_REDUCE_SCATTER:
        return meshcoll_reduce_scatter(mesh, a->in, a->out, a->count, a->datatype, a->op);
    case MESHCOLL_ALLTOALL:
        return meshcoll_alltoall(mesh, a->in, a->out, a->count, a->datatype);
    default:
        return meshcoll_allreduce(mesh, a->in, a->out, a->count, a->datatype, a->op);
    }
}
