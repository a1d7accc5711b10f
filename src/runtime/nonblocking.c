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
