/* The persistent calls: each fills in its arguments and makes a request of them. */
#include "runtime/api/call_args.h"

int meshcoll_init(meshcoll_t *mesh, const meshcoll_args_t *args, meshcoll_request_t **request)
{
    if (!args)
        return mc_init_refuse(mesh, false,
                              mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_init: args is NULL"));
    return mc_init(mesh, args, request);
}

int meshcoll_bcast_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                        meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_rooted(MESHCOLL_BCAST, in, out, count, datatype, root);
    return mc_init(mesh, &a, request);
}

int meshcoll_reduce_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                         meshcoll_datatype_t datatype, meshcoll_op_t op, int root,
                         meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_reducing(MESHCOLL_REDUCE, in, out, count, datatype, op, root);
    return mc_init(mesh, &a, request);
}

int meshcoll_scatter_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                          meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_rooted(MESHCOLL_SCATTER, in, out, count, datatype, root);
    return mc_init(mesh, &a, request);
}

int meshcoll_gather_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                         meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_rooted(MESHCOLL_GATHER, in, out, count, datatype, root);
    return mc_init(mesh, &a, request);
}

int meshcoll_allgather_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                            meshcoll_datatype_t datatype, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_of(MESHCOLL_ALLGATHER, in, out, count, datatype);
    return mc_init(mesh, &a, request);
}

int meshcoll_reduce_scatter_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                 meshcoll_datatype_t datatype, meshcoll_op_t op,
                                 meshcoll_request_t **request)
{
    const meshcoll_args_t a =
        mc_args_reducing(MESHCOLL_REDUCE_SCATTER, in, out, count, datatype, op, 0);
    return mc_init(mesh, &a, request);
}

int meshcoll_allreduce_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                            meshcoll_datatype_t datatype, meshcoll_op_t op,
                            meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_reducing(MESHCOLL_ALLREDUCE, in, out, count, datatype, op, 0);
    return mc_init(mesh, &a, request);
}

int meshcoll_alltoall_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                           meshcoll_datatype_t datatype, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_of(MESHCOLL_ALLTOALL, in, out, count, datatype);
    return mc_init(mesh, &a, request);
}

/* Makes a persistent request of a v-variant. */
static int init_blocks(meshcoll_t *mesh, const meshcoll_args_t *a, meshcoll_request_t **request)
{
    const int status = mc_args_have_counts(a);
    return status ? mc_init_refuse(mesh, a->collective == MESHCOLL_ALLTOALL, status)
                  : mc_init(mesh, a, request);
}

int meshcoll_scatterv_init(meshcoll_t *mesh, const void *in, const size_t *counts,
                           const size_t *displs, void *out, size_t count,
                           meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_blocks(
        mc_args_rooted(MESHCOLL_SCATTER, in, out, count, datatype, root), counts, displs);
    return init_blocks(mesh, &a, request);
}

int meshcoll_gatherv_init(meshcoll_t *mesh, const void *in, size_t count, void *out,
                          const size_t *counts, const size_t *displs, meshcoll_datatype_t datatype,
                          int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_blocks(
        mc_args_rooted(MESHCOLL_GATHER, in, out, count, datatype, root), counts, displs);
    return init_blocks(mesh, &a, request);
}

int meshcoll_scatterv_at_root_init(meshcoll_t *mesh, const void *in, const size_t *counts,
                                   const size_t *displs, void *out, size_t count,
                                   meshcoll_datatype_t datatype, int root,
                                   meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_root_blocks(
        mc_args_rooted(MESHCOLL_SCATTER, in, out, count, datatype, root), counts, displs);
    return mc_init(mesh, &a, request);
}

int meshcoll_gatherv_at_root_init(meshcoll_t *mesh, const void *in, size_t count, void *out,
                                  const size_t *counts, const size_t *displs,
                                  meshcoll_datatype_t datatype, int root,
                                  meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_root_blocks(
        mc_args_rooted(MESHCOLL_GATHER, in, out, count, datatype, root), counts, displs);
    return mc_init(mesh, &a, request);
}

int meshcoll_allgatherv_init(meshcoll_t *mesh, const void *in, size_t count, void *out,
                             const size_t *counts, const size_t *displs,
                             meshcoll_datatype_t datatype, meshcoll_request_t **request)
{
    const meshcoll_args_t a =
        mc_args_blocks(mc_args_of(MESHCOLL_ALLGATHER, in, out, count, datatype), counts, displs);
    return init_blocks(mesh, &a, request);
}

int meshcoll_reduce_scatterv_init(meshcoll_t *mesh, const void *in, void *out, const size_t *counts,
                                  meshcoll_datatype_t datatype, meshcoll_op_t op,
                                  meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_reducing_blocks(mesh, in, out, counts, datatype, op);
    return init_blocks(mesh, &a, request);
}

int meshcoll_alltoallv_init(meshcoll_t *mesh, const void *in, const size_t *in_counts,
                            const size_t *in_displs, void *out, const size_t *out_counts,
                            const size_t *out_displs, meshcoll_datatype_t datatype,
                            meshcoll_request_t **request)
{
    const meshcoll_args_t a =
        mc_args_exchange(in, in_counts, in_displs, out, out_counts, out_displs, datatype);
    return init_blocks(mesh, &a, request);
}
