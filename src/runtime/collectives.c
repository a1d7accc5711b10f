/* The blocking calls: each says what it is, and runs. */
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

int meshcoll_bcast(meshcoll_t *mesh, const void *in, void *out, size_t count,
                   meshcoll_datatype_t datatype, int root)
{
    meshcoll_args_t a = args_of(MESHCOLL_BCAST, in, out, count, datatype);
    a.root = root;
    return mc_run(mesh, &a);
}

int meshcoll_reduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                    meshcoll_datatype_t datatype, meshcoll_op_t op, int root)
{
    meshcoll_args_t a = args_of(MESHCOLL_REDUCE, in, out, count, datatype);
    a.op = op;
    a.root = root;
    return mc_run(mesh, &a);
}

int meshcoll_scatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                     meshcoll_datatype_t datatype, int root)
{
    meshcoll_args_t a = args_of(MESHCOLL_SCATTER, in, out, count, datatype);
    a.root = root;
    return mc_run(mesh, &a);
}

int meshcoll_gather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                    meshcoll_datatype_t datatype, int root)
{
    meshcoll_args_t a = args_of(MESHCOLL_GATHER, in, out, count, datatype);
    a.root = root;
    return mc_run(mesh, &a);
}

int meshcoll_allgather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                       meshcoll_datatype_t datatype)
{
    const meshcoll_args_t a = args_of(MESHCOLL_ALLGATHER, in, out, count, datatype);
    return mc_run(mesh, &a);
}

int meshcoll_reduce_scatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                            meshcoll_datatype_t datatype, meshcoll_op_t op)
{
    meshcoll_args_t a = args_of(MESHCOLL_REDUCE_SCATTER, in, out, count, datatype);
    a.op = op;
    return mc_run(mesh, &a);
}

int meshcoll_allreduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                       meshcoll_datatype_t datatype, meshcoll_op_t op)
{
    meshcoll_args_t a = args_of(MESHCOLL_ALLREDUCE, in, out, count, datatype);
    a.op = op;
    return mc_run(mesh, &a);
}

int meshcoll_set_strategy(meshcoll_t *mesh, meshcoll_collective_t collective, const char *strategy)
{
    if (!mesh || (unsigned)collective >= MESHCOLL_COLLECTIVES)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_set_strategy: the mesh is NULL or there is no collective %d",
                       (int)collective);
    return mc_choice_force(&mesh->choice, collective, strategy, &mesh->mesh);
}
