/* The blocking calls: each says what it is, and runs. */
#include "runtime/calls.h"
#include "runtime/threads.h"

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

int meshcoll_alltoall(meshcoll_t *mesh, const void *in, void *out, size_t count,
                      meshcoll_datatype_t datatype)
{
    const meshcoll_args_t a = args_of(MESHCOLL_ALLTOALL, in, out, count, datatype);
    return mc_run(mesh, &a);
}

/* A v-variant. */
static int run_blocks(meshcoll_t *mesh, meshcoll_args_t *a, const size_t *counts,
                      const size_t *displs)
{
    if (!counts)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%sv: counts are NULL; expected one for each rank",
                       meshcoll_collective_name(a->collective));
    a->counts = counts;
    a->displs = displs;
    return mc_run(mesh, a);
}

int meshcoll_scatterv(meshcoll_t *mesh, const void *in, const size_t *counts, const size_t *displs,
                      void *out, size_t count, meshcoll_datatype_t datatype, int root)
{
    meshcoll_args_t a = args_of(MESHCOLL_SCATTER, in, out, count, datatype);
    a.root = root;
    return run_blocks(mesh, &a, counts, displs);
}

int meshcoll_gatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                     const size_t *counts, const size_t *displs, meshcoll_datatype_t datatype,
                     int root)
{
    meshcoll_args_t a = args_of(MESHCOLL_GATHER, in, out, count, datatype);
    a.root = root;
    return run_blocks(mesh, &a, counts, displs);
}

int meshcoll_allgatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                        const size_t *counts, const size_t *displs, meshcoll_datatype_t datatype)
{
    meshcoll_args_t a = args_of(MESHCOLL_ALLGATHER, in, out, count, datatype);
    return run_blocks(mesh, &a, counts, displs);
}

int meshcoll_reduce_scatterv(meshcoll_t *mesh, const void *in, void *out, const size_t *counts,
                             meshcoll_datatype_t datatype, meshcoll_op_t op)
{
    const size_t count = mesh && counts ? counts[meshcoll_rank(mesh)] : 0;
    meshcoll_args_t a = args_of(MESHCOLL_REDUCE_SCATTER, in, out, count, datatype);
    a.op = op;
    return run_blocks(mesh, &a, counts, NULL);
}

int meshcoll_alltoallv(meshcoll_t *mesh, const void *in, const size_t *in_counts,
                       const size_t *in_displs, void *out, const size_t *out_counts,
                       const size_t *out_displs, meshcoll_datatype_t datatype)
{
    meshcoll_args_t a = args_of(MESHCOLL_ALLTOALL, in, out, 0, datatype);
    a.in_counts = in_counts;
    a.in_displs = in_displs;
    return run_blocks(mesh, &a, out_counts, out_displs);
}

int meshcoll_set_strategy(meshcoll_t *mesh, meshcoll_collective_t collective, const char *strategy)
{
    if (!mesh || (unsigned)collective >= MESHCOLL_COLLECTIVES)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_set_strategy: the mesh is NULL or there is no collective %d",
                       (int)collective);
    mc_lock(mesh);
    const int status = mc_choice_force(&mesh->choice, collective, strategy, &mesh->mesh);
    mc_unlock(mesh);
    return status;
}
