/* The collectives: each with its blocking, nonblocking and persistent form, which differ in how they run the same
 * arguments. */
#include "runtime/call/args.h"
#include "runtime/call/call.h"

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

static meshcoll_args_t rooted(meshcoll_collective_t collective, const void *in, void *out,
                              size_t count, meshcoll_datatype_t datatype, int root)
{
    meshcoll_args_t a = args_of(collective, in, out, count, datatype);
    a.root = root;
    return a;
}

static meshcoll_args_t reducing(meshcoll_collective_t collective, const void *in, void *out,
                                size_t count, meshcoll_datatype_t datatype, meshcoll_op_t op,
                                int root)
{
    meshcoll_args_t a = rooted(collective, in, out, count, datatype, root);
    a.op = op;
    return a;
}

/* With blocks of unequal sizes. */
static meshcoll_args_t blocks(meshcoll_args_t a, const size_t *counts, const size_t *displs)
{
    a.counts = counts ? counts : mc_no_counts;
    a.displs = displs;
    return a;
}

/* Of a rooted call whose counts only the root has. */
static meshcoll_args_t root_blocks(meshcoll_args_t a, const size_t *counts, const size_t *displs)
{
    a.counts_at_root = 1;
    a.counts = counts;
    a.displs = displs;
    return a;
}

static meshcoll_args_t exchange(const void *in, const size_t *in_counts, const size_t *in_displs,
                                void *out, const size_t *out_counts, const size_t *out_displs,
                                meshcoll_datatype_t datatype)
{
    meshcoll_args_t a =
        blocks(args_of(MESHCOLL_ALLTOALL, in, out, 0, datatype), out_counts, out_displs);
    a.in_counts = in_counts ? in_counts : mc_no_counts;
    a.in_displs = in_displs;
    return a;
}

static size_t own_count(const meshcoll_t *mesh, const size_t *counts)
{
    return mesh && counts ? counts[meshcoll_rank(mesh)] : 0;
}

#define LIST(...) __VA_ARGS__
#define FORMS(name, parameters, arguments)                                                      \
    int meshcoll_##name(meshcoll_t *mesh, LIST parameters)                                      \
    {                                                                                           \
        const meshcoll_args_t a = arguments;                                                    \
        return mc_run(mesh, &a);                                                                \
    }                                                                                           \
    int meshcoll_i##name(meshcoll_t *mesh, LIST parameters, meshcoll_request_t **request)       \
    {                                                                                           \
        const meshcoll_args_t a = arguments;                                                    \
        return mc_begin(mesh, &a, request);                                                     \
    }                                                                                           \
    int meshcoll_##name##_init(meshcoll_t *mesh, LIST parameters, meshcoll_request_t **request) \
    {                                                                                           \
        const meshcoll_args_t a = arguments;                                                    \
        return mc_init(mesh, &a, request);                                                      \
    }

FORMS(bcast, (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, int root),
      rooted(MESHCOLL_BCAST, in, out, count, datatype, root))

FORMS(reduce,
      (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, meshcoll_op_t op,
       int root),
      reducing(MESHCOLL_REDUCE, in, out, count, datatype, op, root))

FORMS(scatter, (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, int root),
      rooted(MESHCOLL_SCATTER, in, out, count, datatype, root))

FORMS(gather, (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, int root),
      rooted(MESHCOLL_GATHER, in, out, count, datatype, root))

FORMS(allgather, (const void *in, void *out, size_t count, meshcoll_datatype_t datatype),
      args_of(MESHCOLL_ALLGATHER, in, out, count, datatype))

FORMS(reduce_scatter,
      (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, meshcoll_op_t op),
      reducing(MESHCOLL_REDUCE_SCATTER, in, out, count, datatype, op, 0))

FORMS(allreduce,
      (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, meshcoll_op_t op),
      reducing(MESHCOLL_ALLREDUCE, in, out, count, datatype, op, 0))

FORMS(alltoall, (const void *in, void *out, size_t count, meshcoll_datatype_t datatype),
      args_of(MESHCOLL_ALLTOALL, in, out, count, datatype))

FORMS(scatterv,
      (const void *in, const size_t *counts, const size_t *displs, void *out, size_t count,
       meshcoll_datatype_t datatype, int root),
      blocks(rooted(MESHCOLL_SCATTER, in, out, count, datatype, root), counts, displs))

FORMS(gatherv,
      (const void *in, size_t count, void *out, const size_t *counts, const size_t *displs,
       meshcoll_datatype_t datatype, int root),
      blocks(rooted(MESHCOLL_GATHER, in, out, count, datatype, root), counts, displs))

FORMS(scatterv_at_root,
      (const void *in, const size_t *counts, const size_t *displs, void *out, size_t count,
       meshcoll_datatype_t datatype, int root),
      root_blocks(rooted(MESHCOLL_SCATTER, in, out, count, datatype, root), counts, displs))

FORMS(gatherv_at_root,
      (const void *in, size_t count, void *out, const size_t *counts, const size_t *displs,
       meshcoll_datatype_t datatype, int root),
      root_blocks(rooted(MESHCOLL_GATHER, in, out, count, datatype, root), counts, displs))

FORMS(allgatherv,
      (const void *in, size_t count, void *out, const size_t *counts, const size_t *displs,
       meshcoll_datatype_t datatype),
      blocks(args_of(MESHCOLL_ALLGATHER, in, out, count, datatype), counts, displs))

FORMS(reduce_scatterv,
      (const void *in, void *out, const size_t *counts, meshcoll_datatype_t datatype,
       meshcoll_op_t op),
      blocks(reducing(MESHCOLL_REDUCE_SCATTER, in, out, own_count(mesh, counts), datatype, op, 0),
             counts, NULL))

FORMS(alltoallv,
      (const void *in, const size_t *in_counts, const size_t *in_displs, void *out,
       const size_t *out_counts, const size_t *out_displs, meshcoll_datatype_t datatype),
      exchange(in, in_counts, in_displs, out, out_counts, out_displs, datatype))

int meshcoll_begin(meshcoll_t *mesh, const meshcoll_args_t *args, meshcoll_request_t **request)
{
    return mc_begin(mesh, args, request);
}

int meshcoll_init(meshcoll_t *mesh, const meshcoll_args_t *args, meshcoll_request_t **request)
{
    return mc_init(mesh, args, request);
}
