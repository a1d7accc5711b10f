/* The nonblocking calls: each fills in its arguments and starts them. */
#include "runtime/api/call_args.h"

int meshcoll_begin(meshcoll_t *mesh, const meshcoll_args_t *args, meshcoll_request_t **request)
{
    if (!args)
        return mc_call_refuse(mesh, false,
                              mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_begin: args is NULL"));
    return mc_begin(mesh, args, request);
}

int meshcoll_ibcast(meshcoll_t *mesh, const void *in, void *out, size_t count,
                    meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_rooted(MESHCOLL_BCAST, in, out, count, datatype, root);
    return mc_begin(mesh, &a, request);
}

int meshcoll_ireduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                     meshcoll_datatype_t datatype, meshcoll_op_t op, int root,
                     meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_reducing(MESHCOLL_REDUCE, in, out, count, datatype, op, root);
    return mc_begin(mesh, &a, request);
}

int meshcoll_iscatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                      meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_rooted(MESHCOLL_SCATTER, in, out, count, datatype, root);
    return mc_begin(mesh, &a, request);
}

int meshcoll_igather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                     meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_rooted(MESHCOLL_GATHER, in, out, count, datatype, root);
    return mc_begin(mesh, &a, request);
}

int meshcoll_iallgather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                        meshcoll_datatype_t datatype, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_of(MESHCOLL_ALLGATHER, in, out, count, datatype);
    return mc_begin(mesh, &a, request);
}

int meshcoll_ireduce_scatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                             meshcoll_datatype_t datatype, meshcoll_op_t op,
                             meshcoll_request_t **request)
{
    const meshcoll_args_t a =
        mc_args_reducing(MESHCOLL_REDUCE_SCATTER, in, out, count, datatype, op, 0);
    return mc_begin(mesh, &a, request);
}

int meshcoll_iallreduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                        meshcoll_datatype_t datatype, meshcoll_op_t op,
                        meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_reducing(MESHCOLL_ALLREDUCE, in, out, count, datatype, op, 0);
    return mc_begin(mesh, &a, request);
}

int meshcoll_ialltoall(meshcoll_t *mesh, const void *in, void *out, size_t count,
                       meshcoll_datatype_t datatype, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_of(MESHCOLL_ALLTOALL, in, out, count, datatype);
    return mc_begin(mesh, &a, request);
}

/* Starts a v-variant. */
static int begin_blocks(meshcoll_t *mesh, const meshcoll_args_t *a, meshcoll_request_t **request)
{
    const int status = mc_args_have_counts(a);
    return status ? mc_call_refuse(mesh, a->collective == MESHCOLL_ALLTOALL, status)
                  : mc_begin(mesh, a, request);
}

int meshcoll_iscatterv(meshcoll_t *mesh, const void *in, const size_t *counts, const size_t *displs,
                       void *out, size_t count, meshcoll_datatype_t datatype, int root,
                       meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_blocks(
        mc_args_rooted(MESHCOLL_SCATTER, in, out, count, datatype, root), counts, displs);
    return begin_blocks(mesh, &a, request);
}

int meshcoll_igatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                      const size_t *counts, const size_t *displs, meshcoll_datatype_t datatype,
                      int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_blocks(
        mc_args_rooted(MESHCOLL_GATHER, in, out, count, datatype, root), counts, displs);
    return begin_blocks(mesh, &a, request);
}

int meshcoll_iscatterv_at_root(meshcoll_t *mesh, const void *in, const size_t *counts,
                               const size_t *displs, void *out, size_t count,
                               meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_root_blocks(
        mc_args_rooted(MESHCOLL_SCATTER, in, out, count, datatype, root), counts, displs);
    return mc_begin(mesh, &a, request);
}

int meshcoll_igatherv_at_root(meshcoll_t *mesh, const void *in, size_t count, void *out,
                              const size_t *counts, const size_t *displs,
                              meshcoll_datatype_t datatype, int root, meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_root_blocks(
        mc_args_rooted(MESHCOLL_GATHER, in, out, count, datatype, root), counts, displs);
    return mc_begin(mesh, &a, request);
}

int meshcoll_iallgatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                         const size_t *counts, const size_t *displs, meshcoll_datatype_t datatype,
                         meshcoll_request_t **request)
{
    const meshcoll_args_t a =
        mc_args_blocks(mc_args_of(MESHCOLL_ALLGATHER, in, out, count, datatype), counts, displs);
    return begin_blocks(mesh, &a, request);
}

int meshcoll_ireduce_scatterv(meshcoll_t *mesh, const void *in, void *out, const size_t *counts,
                              meshcoll_datatype_t datatype, meshcoll_op_t op,
                              meshcoll_request_t **request)
{
    const meshcoll_args_t a = mc_args_reducing_blocks(mesh, in, out, counts, datatype, op);
    return begin_blocks(mesh, &a, request);
}

int meshcoll_ialltoallv(meshcoll_t *mesh, const void *in, const size_t *in_counts,
                        const size_t *in_displs, void *out, const size_t *out_counts,
                        const size_t *out_displs, meshcoll_datatype_t datatype,
                        meshcoll_request_t **request)
{
    const meshcoll_args_t a =
        mc_args_exchange(in, in_counts, in_displs, out, out_counts, out_displs, datatype);
    return begin_blocks(mesh, &a, request);
}
