/* The collectives: each with its blocking, nonblocking and persistent form, which differ in how they run the same
 * arguments. */
#include "runtime/call/args.h"
#include "runtime/call/call.h"

static const size_t *table(const size_t *counts)
{
    return counts ? counts : mc_no_counts;
}

static size_t own_count(const meshcoll_t *mesh, const size_t *counts)
{
    return mesh && counts ? counts[meshcoll_rank(mesh)] : 0;
}

/* Of a function with these parameters. */
#define ARGS(which, ...)                                                                       \
    (meshcoll_args_t)                                                                          \
    {                                                                                          \
        .size = sizeof(meshcoll_args_t), .collective = MESHCOLL_##which, .in = in, .out = out, \
        .datatype = datatype, __VA_ARGS__                                                      \
    }
/* `of` has no address, so that GCC stores each field of the copy once, and does not clear it first. */
#define LIST(...) __VA_ARGS__
#define FORMS(name, parameters, arguments)                                                      \
    int meshcoll_##name(meshcoll_t *mesh, LIST parameters)                                      \
    {                                                                                           \
        const meshcoll_args_t of = arguments, a = of;                                           \
        return mc_run(mesh, &a);                                                                \
    }                                                                                           \
    int meshcoll_i##name(meshcoll_t *mesh, LIST parameters, meshcoll_request_t **request)       \
    {                                                                                           \
        const meshcoll_args_t of = arguments, a = of;                                           \
        return mc_begin(mesh, &a, request);                                                     \
    }                                                                                           \
    int meshcoll_##name##_init(meshcoll_t *mesh, LIST parameters, meshcoll_request_t **request) \
    {                                                                                           \
        const meshcoll_args_t of = arguments, a = of;                                           \
        return mc_init(mesh, &a, request);                                                      \
    }

FORMS(bcast, (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, int root),
      ARGS(BCAST, .count = count, .root = root))

FORMS(reduce,
      (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, meshcoll_op_t op,
       int root),
      ARGS(REDUCE, .count = count, .op = op, .root = root))

FORMS(scatter, (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, int root),
      ARGS(SCATTER, .count = count, .root = root))

FORMS(gather, (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, int root),
      ARGS(GATHER, .count = count, .root = root))

FORMS(allgather, (const void *in, void *out, size_t count, meshcoll_datatype_t datatype),
      ARGS(ALLGATHER, .count = count))

FORMS(reduce_scatter,
      (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, meshcoll_op_t op),
      ARGS(REDUCE_SCATTER, .count = count, .op = op))

FORMS(allreduce,
      (const void *in, void *out, size_t count, meshcoll_datatype_t datatype, meshcoll_op_t op),
      ARGS(ALLREDUCE, .count = count, .op = op))

FORMS(alltoall, (const void *in, void *out, size_t count, meshcoll_datatype_t datatype),
      ARGS(ALLTOALL, .count = count))

FORMS(scatterv,
      (const void *in, const size_t *counts, const size_t *displs, void *out, size_t count,
       meshcoll_datatype_t datatype, int root),
      ARGS(SCATTER, .count = count, .root = root, .counts = table(counts), .displs = displs))

FORMS(gatherv,
      (const void *in, size_t count, void *out, const size_t *counts, const size_t *displs,
       meshcoll_datatype_t datatype, int root),
      ARGS(GATHER, .count = count, .root = root, .counts = table(counts), .displs = displs))

FORMS(scatterv_at_root,
      (const void *in, const size_t *counts, const size_t *displs, void *out, size_t count,
       meshcoll_datatype_t datatype, int root),
      ARGS(SCATTER, .count = count, .root = root, .counts_at_root = 1, .counts = counts,
           .displs = displs))

FORMS(gatherv_at_root,
      (const void *in, size_t count, void *out, const size_t *counts, const size_t *displs,
       meshcoll_datatype_t datatype, int root),
      ARGS(GATHER, .count = count, .root = root, .counts_at_root = 1, .counts = counts,
           .displs = displs))

FORMS(allgatherv,
      (const void *in, size_t count, void *out, const size_t *counts, const size_t *displs,
       meshcoll_datatype_t datatype),
      ARGS(ALLGATHER, .count = count, .counts = table(counts), .displs = displs))

FORMS(reduce_scatterv,
      (const void *in, void *out, const size_t *counts, meshcoll_datatype_t datatype,
       meshcoll_op_t op),
      ARGS(REDUCE_SCATTER, .count = own_count(mesh, counts), .op = op, .counts = table(counts)))

FORMS(alltoallv,
      (const void *in, const size_t *in_counts, const size_t *in_displs, void *out,
       const size_t *out_counts, const size_t *out_displs, meshcoll_datatype_t datatype),
      ARGS(ALLTOALL, .in_counts = table(in_counts), .in_displs = in_displs,
           .counts = table(out_counts), .displs = out_displs))

int meshcoll_begin(meshcoll_t *mesh, const meshcoll_args_t *args, meshcoll_request_t **request)
{
    return mc_begin(mesh, args, request);
}

int meshcoll_init(meshcoll_t *mesh, const meshcoll_args_t *args, meshcoll_request_t **request)
{
    return mc_init(mesh, args, request);
}
