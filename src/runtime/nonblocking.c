/* The calls that do not wait: each says what it is, and begins. */
#include "runtime/calls.h"

static meshcoll_args_t args_of(meshcoll_collective_t collective, const void *in, void *out,
                               size_t count, meshcoll_datatype_t datatype)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = collective,
                             .in = in,
                             .out = out,
                             .count = count,
                             .datatype = datatype};
}

int meshcoll_begin(meshcoll_t *mesh, const meshcoll_args_t *args, meshcoll_request_t **request)
{
    if (!args)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_begin: args is NULL");
    return mc_begin(mesh, args, request);
}

int meshcoll_ibcast(meshcoll_t *mesh, const void *in, void *out, size_t count,
                    meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    meshcoll_args_t a = args_of(MESHCOLL_BCAST, in, out, count, datatype);
    a.root = root;
    return mc_begin(mesh, &a, request);
}

int meshcoll_ireduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                     meshcoll_datatype_t datatype, meshcoll_op_t op, int root,
                     meshcoll_request_t **request)
{
    meshcoll_args_t a = args_of(MESHCOLL_REDUCE, in, out, count, datatype);
    a.op = op;
    a.root = root;
    return mc_begin(mesh, &a, request);
}

int meshcoll_iscatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                      meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    meshcoll_args_t a = args_of(MESHCOLL_SCATTER, in, out, count, datatype);
    a.root = root;
    return mc_begin(mesh, &a, request);
}

int meshcoll_igather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                     meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    meshcoll_args_t a = args_of(MESHCOLL_GATHER, in, out, count, datatype);
    a.root = root;
    return mc_begin(mesh, &a, request);
}

int meshcoll_iallgather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                        meshcoll_datatype_t datatype, meshcoll_request_t **request)
{
    const meshcoll_args_t a = args_of(MESHCOLL_ALLGATHER, in, out, count, datatype);
    return mc_begin(mesh, &a, request);
}

int meshcoll_ireduce_scatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                             meshcoll_datatype_t datatype, meshcoll_op_t op,
                             meshcoll_request_t **request)
{
    meshcoll_args_t a = args_of(MESHCOLL_REDUCE_SCATTER, in, out, count, datatype);
    a.op = op;
    return mc_begin(mesh, &a, request);
}

int meshcoll_iallreduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                        meshcoll_datatype_t datatype, meshcoll_op_t op,
                        meshcoll_request_t **request)
{
    meshcoll_args_t a = args_of(MESHCOLL_ALLREDUCE, in, out, count, datatype);
    a.op = op;
    return mc_begin(mesh, &a, request);
}

int meshcoll_ialltoall(meshcoll_t *mesh, const void *in, void *out, size_t count,
                       meshcoll_datatype_t datatype, meshcoll_request_t **request)
{
    const meshcoll_args_t a = args_of(MESHCOLL_ALLTOALL, in, out, count, datatype);
    return mc_begin(mesh, &a, request);
}

/* A v-variant. */
static int begin_blocks(meshcoll_t *mesh, meshcoll_args_t *a, const size_t *counts,
                        const size_t *displs, meshcoll_request_t **request)
{
    if (!counts)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "i%sv: counts are NULL; expected one for each rank",
                       meshcoll_collective_name(a->collective));
    a->counts = counts;
    a->displs = displs;
    return mc_begin(mesh, a, request);
}

int meshcoll_iscatterv(meshcoll_t *mesh, const void *in, const size_t *counts, const size_t *displs,
                       void *out, size_t count, meshcoll_datatype_t datatype, int root,
                       meshcoll_request_t **request)
{
    meshcoll_args_t a = args_of(MESHCOLL_SCATTER, in, out, count, datatype);
    a.root = root;
    return begin_blocks(mesh, &a, counts, displs, request);
}

int meshcoll_igatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                      const size_t *counts, const size_t *displs, meshcoll_datatype_t datatype,
                      int root, meshcoll_request_t **request)
{
    meshcoll_args_t a = args_of(MESHCOLL_GATHER, in, out, count, datatype);
    a.root = root;
    return begin_blocks(mesh, &a, counts, displs, request);
}

int meshcoll_iallgatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                         const size_t *counts, const size_t *displs, meshcoll_datatype_t datatype,
                         meshcoll_request_t **request)
{
    meshcoll_args_t a = args_of(MESHCOLL_ALLGATHER, in, out, count, datatype);
    return begin_blocks(mesh, &a, counts, displs, request);
}

int meshcoll_ireduce_scatterv(meshcoll_t *mesh, const void *in, void *out, const size_t *counts,
                              meshcoll_datatype_t datatype, meshcoll_op_t op,
                              meshcoll_request_t **request)
{
    const size_t count = mesh && counts ? counts[meshcoll_rank(mesh)] : 0;
    meshcoll_args_t a = args_of(MESHCOLL_REDUCE_SCATTER, in, out, count, datatype);
    a.op = op;
    return begin_blocks(mesh, &a, counts, NULL, request);
}

int meshcoll_ialltoallv(meshcoll_t *mesh, const void *in, const size_t *in_counts,
                        const size_t *in_displs, void *out, const size_t *out_counts,
                        const size_t *out_displs, meshcoll_datatype_t datatype,
                        meshcoll_request_t **request)
{
    meshcoll_args_t a = args_of(MESHCOLL_ALLTOALL, in, out, 0, datatype);
    a.in_counts = in_counts;
    a.in_displs = in_displs;
    return begin_blocks(mesh, &a, out_counts, out_displs, request);
}
