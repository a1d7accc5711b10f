/* Turns the parameters of public functions into meshcoll_args_t, for blocking, nonblocking and
 * persistent variants. */
#ifndef MC_RUNTIME_CALL_ARGS_H
#define MC_RUNTIME_CALL_ARGS_H

#include "runtime/call/calls.h"
#include "runtime/request/numbers.h"

static inline meshcoll_args_t mc_args_of(meshcoll_collective_t collective, const void *in,
                                         void *out, size_t count, meshcoll_datatype_t datatype)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = collective,
                             .in = in,
                             .out = out,
                             .count = count,
                             .datatype = datatype};
}

static inline meshcoll_args_t mc_args_rooted(meshcoll_collective_t collective, const void *in,
                                             void *out, size_t count, meshcoll_datatype_t datatype,
                                             int root)
{
    meshcoll_args_t a = mc_args_of(collective, in, out, count, datatype);
    a.root = root;
    return a;
}

static inline meshcoll_args_t mc_args_reducing(meshcoll_collective_t collective, const void *in,
                                               void *out, size_t count,
                                               meshcoll_datatype_t datatype, meshcoll_op_t op,
                                               int root)
{
    meshcoll_args_t a = mc_args_rooted(collective, in, out, count, datatype, root);
    a.op = op;
    return a;
}

/* Adds blocks of unequal sizes to the arguments. */
static inline meshcoll_args_t mc_args_blocks(meshcoll_args_t a, const size_t *counts,
                                             const size_t *displs)
{
    a.counts = counts;
    a.displs = displs;
    return a;
}

/* The same for a rooted call whose counts only the root has. */
static inline meshcoll_args_t mc_args_root_blocks(meshcoll_args_t a, const size_t *counts,
                                                  const size_t *displs)
{
    a.counts_at_root = 1;
    return mc_args_blocks(a, counts, displs);
}

static inline meshcoll_args_t mc_args_reducing_blocks(const meshcoll_t *mesh, const void *in,
                                                      void *out, const size_t *counts,
                                                      meshcoll_datatype_t datatype,
                                                      meshcoll_op_t op)
{
    const size_t count = mesh && counts ? counts[meshcoll_rank(mesh)] : 0;
    return mc_args_blocks(
        mc_args_reducing(MESHCOLL_REDUCE_SCATTER, in, out, count, datatype, op, 0), counts, NULL);
}

static inline meshcoll_args_t mc_args_exchange(const void *in, const size_t *in_counts,
                                               const size_t *in_displs, void *out,
                                               const size_t *out_counts, const size_t *out_displs,
                                               meshcoll_datatype_t datatype)
{
    meshcoll_args_t a =
        mc_args_blocks(mc_args_of(MESHCOLL_ALLTOALL, in, out, 0, datatype), out_counts, out_displs);
    a.in_counts = in_counts;
    a.in_displs = in_displs;
    return a;
}

/* Checks that a v-variant has its counts: without, it would be the call with equal blocks. */
static inline int mc_args_have_counts(const meshcoll_args_t *a)
{
    const bool both = a->counts && (a->in_counts || a->collective != MESHCOLL_ALLTOALL);
    if (both)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%sv: %scounts are NULL; expected one for each rank",
                   meshcoll_collective_name(a->collective), a->counts ? "in_" : "");
}

#endif
