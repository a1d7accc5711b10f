/* The blocking calls: each fills in its arguments and runs them. */
#include "runtime/api/call_args.h"
#include "runtime/progress/threads.h"
#include "runtime/request/cache.h"

int meshcoll_bcast(meshcoll_t *mesh, const void *in, void *out, size_t count,
                   meshcoll_datatype_t datatype, int root)
{
    const meshcoll_args_t a = mc_args_rooted(MESHCOLL_BCAST, in, out, count, datatype, root);
    return mc_run(mesh, &a);
}

int meshcoll_reduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                    meshcoll_datatype_t datatype, meshcoll_op_t op, int root)
{
    const meshcoll_args_t a = mc_args_reducing(MESHCOLL_REDUCE, in, out, count, datatype, op, root);
    return mc_run(mesh, &a);
}

int meshcoll_scatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                     meshcoll_datatype_t datatype, int root)
{
    const meshcoll_args_t a = mc_args_rooted(MESHCOLL_SCATTER, in, out, count, datatype, root);
    return mc_run(mesh, &a);
}

int meshcoll_gather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                    meshcoll_datatype_t datatype, int root)
{
    const meshcoll_args_t a = mc_args_rooted(MESHCOLL_GATHER, in, out, count, datatype, root);
    return mc_run(mesh, &a);
}

int meshcoll_allgather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                       meshcoll_datatype_t datatype)
{
    const meshcoll_args_t a = mc_args_of(MESHCOLL_ALLGATHER, in, out, count, datatype);
    return mc_run(mesh, &a);
}

int meshcoll_reduce_scatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                            meshcoll_datatype_t datatype, meshcoll_op_t op)
{
    const meshcoll_args_t a =
        mc_args_reducing(MESHCOLL_REDUCE_SCATTER, in, out, count, datatype, op, 0);
    return mc_run(mesh, &a);
}

int meshcoll_allreduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                       meshcoll_datatype_t datatype, meshcoll_op_t op)
{
    const meshcoll_args_t a = mc_args_reducing(MESHCOLL_ALLREDUCE, in, out, count, datatype, op, 0);
    return mc_run(mesh, &a);
}

int meshcoll_alltoall(meshcoll_t *mesh, const void *in, void *out, size_t count,
                      meshcoll_datatype_t datatype)
{
    const meshcoll_args_t a = mc_args_of(MESHCOLL_ALLTOALL, in, out, count, datatype);
    return mc_run(mesh, &a);
}

/* Runs a v-variant. */
static int run_blocks(meshcoll_t *mesh, const meshcoll_args_t *a)
{
    const int status = mc_args_have_counts(a);
    return status ? mc_call_refuse(mesh, a->collective == MESHCOLL_ALLTOALL, status)
                  : mc_run(mesh, a);
}

int meshcoll_scatterv(meshcoll_t *mesh, const void *in, const size_t *counts, const size_t *displs,
                      void *out, size_t count, meshcoll_datatype_t datatype, int root)
{
    const meshcoll_args_t a = mc_args_blocks(
        mc_args_rooted(MESHCOLL_SCATTER, in, out, count, datatype, root), counts, displs);
    return run_blocks(mesh, &a);
}

int meshcoll_gatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                     const size_t *counts, const size_t *displs, meshcoll_datatype_t datatype,
                     int root)
{
    const meshcoll_args_t a = mc_args_blocks(
        mc_args_rooted(MESHCOLL_GATHER, in, out, count, datatype, root), counts, displs);
    return run_blocks(mesh, &a);
}

int meshcoll_scatterv_at_root(meshcoll_t *mesh, const void *in, const size_t *counts,
                              const size_t *displs, void *out, size_t count,
                              meshcoll_datatype_t datatype, int root)
{
    const meshcoll_args_t a = mc_args_root_blocks(
        mc_args_rooted(MESHCOLL_SCATTER, in, out, count, datatype, root), counts, displs);
    return mc_run(mesh, &a);
}

int meshcoll_gatherv_at_root(meshcoll_t *mesh, const void *in, size_t count, void *out,
                             const size_t *counts, const size_t *displs,
                             meshcoll_datatype_t datatype, int root)
{
    const meshcoll_args_t a = mc_args_root_blocks(
        mc_args_rooted(MESHCOLL_GATHER, in, out, count, datatype, root), counts, displs);
    return mc_run(mesh, &a);
}

int meshcoll_allgatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                        const size_t *counts, const size_t *displs, meshcoll_datatype_t datatype)
{
    const meshcoll_args_t a =
        mc_args_blocks(mc_args_of(MESHCOLL_ALLGATHER, in, out, count, datatype), counts, displs);
    return run_blocks(mesh, &a);
}

int meshcoll_reduce_scatterv(meshcoll_t *mesh, const void *in, void *out, const size_t *counts,
                             meshcoll_datatype_t datatype, meshcoll_op_t op)
{
    const meshcoll_args_t a = mc_args_reducing_blocks(mesh, in, out, counts, datatype, op);
    return run_blocks(mesh, &a);
}

int meshcoll_alltoallv(meshcoll_t *mesh, const void *in, const size_t *in_counts,
                       const size_t *in_displs, void *out, const size_t *out_counts,
                       const size_t *out_displs, meshcoll_datatype_t datatype)
{
    const meshcoll_args_t a =
        mc_args_exchange(in, in_counts, in_displs, out, out_counts, out_displs, datatype);
    return run_blocks(mesh, &a);
}

int meshcoll_set_strategy(meshcoll_t *mesh, meshcoll_collective_t collective, const char *strategy)
{
    if (!mesh || (unsigned)collective >= MESHCOLL_COLLECTIVES)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_set_strategy: the mesh is NULL or there is no collective %d",
                       (int)collective);
    mc_lock(mesh);
    const int status = mc_choice_force(&mesh->choice, collective, strategy, &mesh->mesh);
    if (!status)
        mc_cache_drop(mesh, collective);
    mc_unlock(mesh);
    return status;
}
