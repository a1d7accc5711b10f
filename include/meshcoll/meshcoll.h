/** @file
 * meshcoll: collectives composed over a mesh of ranks.
 *
 * Every function returns MESHCOLL_OK (0) or a negative status; meshcoll_last_error() then has one
 * line for a person. Functions that make a handle return it through their last argument, set only
 * on success. Handles are opaque. Buffers are host memory today.
 *
 * One thread at a time uses a mesh and its requests, and whoever starts a request also waits for it:
 * a thread that waits moves on everything it has started, on all its meshes. With a progress thread, or
 * MESHCOLL_THREADS=multiple, any thread may call at any time and wait for any request, each request
 * for one thread at a time; that calls come in the same order on all ranks stays the program's task,
 * and creating and destroying a mesh is for one thread.
 *
 * A run that fails ends all that runs on its mesh on this rank, with the same error, and the mesh runs
 * nothing more. The buffers of what ran must stay until meshcoll_destroy: where a network card reads and
 * writes them by itself (RDMA) a peer may still reach them. Peers in the same box are told within some
 * tenths of a second; between boxes a rank that fails alone leaves its peers waiting today.
 *
 * Shapes follow NCCL: `count` counts elements of the whole vector for broadcast, reduce and
 * allreduce, and of one rank's block for scatter, gather, allgather and reduce-scatter, whose
 * other buffer holds size() blocks in rank order. Of alltoall it counts the elements of one block
 * too; both buffers hold size() of them: in by destination, out by source.
 *
 * Ranks are the caller's everywhere (of the communicator, or of meshcoll_oob_t): arguments, blocks
 * and messages. Where they do not run box by box, the mesh places them in another order, which
 * only the order of the summands shows.
 */
#ifndef MESHCOLL_MESHCOLL_H
#define MESHCOLL_MESHCOLL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MESHCOLL_API __attribute__((visibility("default")))
#else
#define MESHCOLL_API
#endif

/** All statuses: X(name, value, what it tells a person). */
#define MESHCOLL_STATUS_TABLE(X)                                                \
    X(OK, 0, "success")                                                         \
    X(IN_PROGRESS, 1, "not complete yet")                                       \
    X(ERR_INVALID_ARG, -1, "an argument is outside what the function takes")    \
    X(ERR_NO_MEMORY, -2, "out of memory")                                       \
    X(ERR_PARSE, -3, "a text does not parse")                                   \
    X(ERR_MESH, -4, "the mesh does not fit")                                    \
    X(ERR_STRATEGY, -5, "the strategy does not fit the collective or the mesh") \
    X(ERR_PLAN, -6, "a plan breaks its own rules")                              \
    X(ERR_TRANSPORT, -7, "a transport failed")                                  \
    X(ERR_UNSUPPORTED, -8, "not supported")                                     \
    X(ERR_IO, -9, "a file could not be read or written")

/** What functions return; meshcoll_status_string() has the texts. */
typedef enum {
#define X(name, value, text) MESHCOLL_##name = value,
    MESHCOLL_STATUS_TABLE(X)
#undef X
} meshcoll_status_t;

/** What can be run; the names in texts are "bcast", "reduce_scatter", …. */
typedef enum {
    MESHCOLL_BCAST,          /**< the root's vector to all ranks */
    MESHCOLL_REDUCE,         /**< the vectors of all ranks, reduced, to the root */
    MESHCOLL_SCATTER,        /**< each rank its block of the root's */
    MESHCOLL_GATHER,         /**< each rank's block to the root */
    MESHCOLL_ALLGATHER,      /**< each rank's block to all ranks */
    MESHCOLL_REDUCE_SCATTER, /**< each rank its block of the reduced vectors */
    MESHCOLL_ALLREDUCE,      /**< the vectors of all ranks, reduced, to all ranks */
    MESHCOLL_ALLTOALL,       /**< a block from each rank to each rank */
    MESHCOLL_COLLECTIVES     /**< how many there are */
} meshcoll_collective_t;

/** Elements, in host byte order; their names in texts are "float32", "float8_e4m3", "float32_int32", …
 * docs/datatypes.md says which operations each takes, and what is rounded where. */
typedef enum {
    MESHCOLL_FLOAT32,     /**< IEEE 754 binary32 */
    MESHCOLL_FLOAT64,     /**< IEEE 754 binary64 */
    MESHCOLL_INT32,       /**< 32 bits, two's complement */
    MESHCOLL_INT64,       /**< 64 bits, two's complement */
    MESHCOLL_INT8,        /**< 8 bits, two's complement */
    MESHCOLL_INT16,       /**< 16 bits, two's complement */
    MESHCOLL_UINT8,       /**< 8 bits, no sign */
    MESHCOLL_UINT16,      /**< 16 bits, no sign */
    MESHCOLL_UINT32,      /**< 32 bits, no sign */
    MESHCOLL_UINT64,      /**< 64 bits, no sign */
    MESHCOLL_FLOAT16,     /**< IEEE 754 binary16 */
    MESHCOLL_BFLOAT16,    /**< the upper half of a float32 */
    MESHCOLL_FLOAT8_E4M3, /**< OCP E4M3: no infinities, as float8_e4m3fn */
    MESHCOLL_FLOAT8_E5M2, /**< OCP E5M2 */
    MESHCOLL_COMPLEX64,   /**< two float32: real, imaginary */
    MESHCOLL_COMPLEX128,  /**< two float64 */
    /* value and index, for minloc and maxloc: a C struct of the two, padding included */
    MESHCOLL_FLOAT32_INT32,           /**< value and index: MPI_FLOAT_INT */
    MESHCOLL_FLOAT64_INT32,           /**< value and index: MPI_DOUBLE_INT */
    MESHCOLL_INT32_INT32,             /**< value and index: MPI_2INT */
    MESHCOLL_INT64_INT32,             /**< value and index: MPI_LONG_INT, where long has 64 bits */
    MESHCOLL_FLOAT64_INT64,           /**< value and index: MPI has none */
    MESHCOLL_INT64_INT64,             /**< value and index: MPI has none */
    MESHCOLL_DATATYPES,               /**< how many of these there are */
    MESHCOLL_DATATYPE_BYTES = 1 << 8, /**< those of meshcoll_datatype_of have greater values */
    MESHCOLL_DATATYPE_LAST = 0x7fffffff /**< makes the type wide enough for all of them */
} meshcoll_datatype_t;

/** Operations of the library, then those of meshcoll_op_create. */
typedef enum {
    MESHCOLL_SUM,  /**< of numbers, complex ones too */
    MESHCOLL_MIN,  /**< of integers and floats */
    MESHCOLL_MAX,  /**< of integers and floats */
    MESHCOLL_PROD, /**< of numbers, complex ones too */
    /** the sum, divided once by the number of ranks at the end; integers truncate */
    MESHCOLL_AVG,
    MESHCOLL_LAND,                /**< logical, integers only: 0 or 1 */
    MESHCOLL_LOR,                 /**< logical, integers only */
    MESHCOLL_LXOR,                /**< logical, integers only: whether an odd number are true */
    MESHCOLL_BAND,                /**< bitwise, integers only */
    MESHCOLL_BOR,                 /**< bitwise, integers only */
    MESHCOLL_BXOR,                /**< bitwise, integers only */
    MESHCOLL_MINLOC,              /**< the smallest value, and the lowest index that has it */
    MESHCOLL_MAXLOC,              /**< the largest value, and the lowest index that has it */
    MESHCOLL_OPS,                 /**< how many the library has */
    MESHCOLL_OP_USER = 1 << 8,    /**< users' operations have this value and above */
    MESHCOLL_OP_LAST = 0x7fffffff /**< makes the type wide enough for all of them */
} meshcoll_op_t;

/** Text of a status, static; never NULL. */
MESHCOLL_API const char *meshcoll_status_string(int status);

/** One line about the last failure in this thread; "" if there was none. Valid until the next call. */
MESHCOLL_API const char *meshcoll_last_error(void);

/** "major.minor.patch", static. */
MESHCOLL_API const char *meshcoll_version(void);

/** @name Names in texts
 * @{ */
/** Name as in texts ("bcast", "float32", "sum"), static; NULL when out of range. Operations of users are
 * all named "user", elements of meshcoll_datatype_of "bytes". */
MESHCOLL_API const char *meshcoll_collective_name(meshcoll_collective_t collective);
MESHCOLL_API const char *meshcoll_datatype_name(meshcoll_datatype_t datatype);
MESHCOLL_API const char *meshcoll_op_name(meshcoll_op_t op);
/** @} */

/** Bytes of one element, padding included; 0 when out of range. */
MESHCOLL_API size_t meshcoll_datatype_size(meshcoll_datatype_t datatype);

/**
 * Elements of `bytes` bytes back to back, as a C struct of that sizeof is: what MPI_Type_contiguous makes of
 * MPI_BYTE. Every collective moves them, and users' operations reduce them, whole and at addresses
 * that are multiples of 8 where those of the buffers and `bytes` are. The value follows from `bytes` alone: it is
 * the same in all processes, and there is nothing to free. ERR_INVALID_ARG where `bytes` is 0 or above 2^30.
 */
MESHCOLL_API int meshcoll_datatype_of(size_t bytes, meshcoll_datatype_t *datatype);

/**
 * A user's operation: dst[i] = a[i] (op) b[i] for `count` elements of `datatype`. `dst` is a, b, or
 * overlaps neither; a's contributions come from lower ranks than b's unless the operation commutes.
 * It must be associative, and give the same for the same operands on every rank. It is called
 * within calls into meshcoll, with parts of the vector of any length, and must not call meshcoll.
 */
typedef void (*meshcoll_op_fn_t)(void *context, void *dst, const void *a, const void *b,
                                 size_t count, meshcoll_datatype_t datatype);

/**
 * Makes an operation for all datatypes and meshes of this process. One that does not commute is
 * reduced in the order of the communicator's ranks: x0 (op) x1 (op) … ; then only strategies that keep it
 * are used, and where ranks do not stand box by box only such along all dimensions at once.
 * `context` goes to every call, and stays the caller's. All ranks create the same operations with
 * the same `commutative`; handles may differ between ranks. Errors: ERR_NO_MEMORY when there are too
 * many at once.
 */
MESHCOLL_API int meshcoll_op_create(meshcoll_op_fn_t function, int commutative, void *context,
                                    meshcoll_op_t *op);
/** No call takes it any more; persistent requests made with it still run, so that `function` and
 * `context` must outlive those. ERR_INVALID_ARG where it is none that was created. */
MESHCOLL_API int meshcoll_op_free(meshcoll_op_t op);

/** MESHCOLL_OK where `op` takes `datatype`, else an error whose text says what would fit. */
MESHCOLL_API int meshcoll_op_check(meshcoll_op_t op, meshcoll_datatype_t datatype);

/** A mesh of ranks with its transports, one handle per rank. */
typedef struct meshcoll meshcoll_t;

/** One started or startable operation. */
typedef struct meshcoll_request meshcoll_request_t;

/**
 * How meshcoll_create builds the mesh; rank 0's parameters and environment hold for all ranks.
 * Zero-initialise and set `size` to sizeof(meshcoll_params_t); fields after `size` bytes read as
 * their defaults, so that the struct can grow. NULL texts mean "not given"; texts are copied.
 */
typedef struct {
    size_t size; /**< sizeof(meshcoll_params_t), in bytes */
    /** The mesh: "box=4,gpu=8", outermost first; its extents multiply to the number of ranks,
     * which fill it in their order; but where its dimension "box" is as long as there are boxes, box by box.
     * Or boxes of unequal sizes, "box=8+8+4", which has dimensions box, gpu and fold: neighbours in a box
     * differ in fold (docs/architecture.md). At most 2^22 ranks. Default: env
     * MESHCOLL_MESH, else found, box by box: ranks that can share memory form a box, and where each
     * NUMA node (or socket) of every box has as many ranks bound to it, these a "numa" (or "socket"). */
    const char *mesh;
    /** Link models: a preset's name, or a list per dimension, as `meshcoll plan --links` takes them.
     * Default: env MESHCOLL_LINKS, else what `meshcoll tune` measured on this cluster, else the
     * preset named in docs/links.md as default. */
    const char *links;
    /** Transports per dimension, "box=tcp,self;gpu=shm": a list of UCX's; or "shm", meshcoll's own, or
     * "shm:copy", the same where processes may not read each other's memory. Where they may not open
     * it either, another transport stands in for both (docs/security.md). While a mesh has "shm", any
     * process of this user may trace this one, where Yama would let only parents. Default: env
     * MESHCOLL_TRANSPORTS, else network transports between boxes and shm inside one. */
    const char *transports;
    /** What meshcoll_explain is to tell: "1", "factor:3", "report.txt"; docs/explain.md has the
     * grammar. Default: env MESHCOLL_EXPLAIN, else nothing is recorded. */
    const char *explain;
    /** Who moves messages on while the program computes: "none", each call for itself, or "thread", a
     * thread of the mesh's own, which sleeps while nothing is to do. Default: env MESHCOLL_PROGRESS,
     * else "none". */
    const char *progress;
    /** "single": one thread at a time uses the mesh and its requests; "multiple": any. With a progress
     * thread any may. Default: env MESHCOLL_THREADS, else "single". */
    const char *threads;
    /** "1": what reductions give depends bit by bit on the ranks' values and number alone, not on how
     * ranks are placed in boxes, nor on strategies; docs/reproducible.md says how and at which cost.
     * "0": also on these. Default: env MESHCOLL_REPRODUCIBLE, else "0". */
    const char *reproducible;
} meshcoll_params_t;

/**
 * Out-of-band allgather that meshcoll_create_oob uses to exchange addresses. `allgather` gathers
 * `bytes` bytes of each rank into `out` (size * bytes, in rank order), and returns 0 on success. It
 * is called only within meshcoll_create_oob and meshcoll_destroy (there as a barrier); `context` must
 * live until then, the struct itself only until meshcoll_create_oob returns.
 */
typedef struct {
    int rank /**< this rank, from 0 on */, size; /**< how many there are */
    void *context;                               /**< goes to every call, and stays the caller's */
    /** `in` has `bytes` bytes, `out` size * bytes; both are the library's. */
    int (*allgather)(void *context, const void *in, void *out, size_t bytes);
} meshcoll_oob_t;

/** Collective over all ranks. Free with meshcoll_destroy. meshcoll/mpi.h makes one from an MPI
 * communicator. `params` may be NULL. Errors: ERR_INVALID_ARG and ERR_PARSE of a setting, ERR_MESH (the
 * message names meshes that would fit), ERR_TRANSPORT, ERR_NO_MEMORY. */
MESHCOLL_API int meshcoll_create_oob(const meshcoll_oob_t *oob, const meshcoll_params_t *params,
                                     meshcoll_t **mesh);

/**
 * The sub-mesh of the ranks that agree with this one in all dimensions but `dims` ("gpu", "box,gpu"):
 * of dp=2,tp=4 the dimensions "tp" give two tensor-parallel groups of four, "dp" four data-parallel groups
 * of two. Its dimensions are in the order of `mesh`, its ranks row by row. It may be used beside `mesh`
 * and other sub-meshes, and split again. Links are those of `mesh`, priced as if all sub-meshes of the
 * split ran at once; strategies of the environment hold where they fit it. Boxes of unequal sizes split
 * by "gpu,fold", into boxes, or by all three dimensions; ERR_UNSUPPORTED otherwise.
 * Collective over `mesh`, as is its meshcoll_destroy, which belongs before that of `mesh`: destroying
 * `mesh` destroys the sub-meshes it still has. Errors: ERR_INVALID_ARG where there is no such
 * dimension or a group is open on `mesh`, ERR_TRANSPORT, ERR_NO_MEMORY, ERR_UNSUPPORTED.
 */
MESHCOLL_API int meshcoll_split(meshcoll_t *mesh, const char *dims, meshcoll_t **sub);

/** Collective over all ranks (of a sub-mesh: over the ranks of the mesh it was split from); NULL is
 * allowed. Requests should be complete: those that still run are given up, which
 * meshcoll_last_error() tells, and can then only be freed. */
MESHCOLL_API void meshcoll_destroy(meshcoll_t *mesh);

/** This rank, from 0 on; ERR_INVALID_ARG (negative) where `mesh` is NULL. */
MESHCOLL_API int meshcoll_rank(const meshcoll_t *mesh);
/** How many ranks the mesh has; ERR_INVALID_ARG (negative) where `mesh` is NULL. */
MESHCOLL_API int meshcoll_size(const meshcoll_t *mesh);

/** The mesh's text, "box=4,gpu=8" or "box=8+8+4"; owned by the handle; NULL where `mesh` is. */
MESHCOLL_API const char *meshcoll_mesh_text(const meshcoll_t *mesh);

/** Where a rank stands along dimension `dim` (0 = outermost), from 0 on; ERR_INVALID_ARG
 * (negative) if there is no such. */
MESHCOLL_API int meshcoll_coord(const meshcoll_t *mesh, int rank, int dim);

/**
 * Force a strategy for one collective on this mesh, on all ranks alike: a strategy text
 * ("scatter:mst(box) bcast:mst(gpu) allgather:ring(box) segments=8"), a named entry ("option2",
 * "flat-ring"), or NULL to let the planner choose again. The environment does the same for a whole
 * run: MESHCOLL_STRATEGY_BCAST=…, MESHCOLL_STRATEGY_ALLREDUCE=… . The API wins over the
 * environment. Errors: ERR_STRATEGY with the reason.
 */
MESHCOLL_API int meshcoll_set_strategy(meshcoll_t *mesh, meshcoll_collective_t collective,
                                       const char *strategy);

/** @name Blocking calls
 * @{ */
/**
 * The eight collectives and barrier, blocking. Called by all ranks of the mesh in the same order.
 * In place: where both buffers hold the whole vector, or a block for every rank, in == out; where one holds a block, it is
 * this rank's block of the other (out == in + rank * count elements, or the reverse).
 * `in` is never modified unless in place. Buffers a rank does not use may be NULL. Errors:
 * ERR_INVALID_ARG (a buffer, root, datatype or operation that does not fit), ERR_STRATEGY (a forced one
 * does not fit), ERR_NO_MEMORY, ERR_TRANSPORT, after which the mesh runs nothing more.
 */
MESHCOLL_API int meshcoll_bcast(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                meshcoll_datatype_t datatype, int root);
MESHCOLL_API int meshcoll_reduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                 meshcoll_datatype_t datatype, meshcoll_op_t op, int root);
MESHCOLL_API int meshcoll_scatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                  meshcoll_datatype_t datatype, int root);
MESHCOLL_API int meshcoll_gather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                 meshcoll_datatype_t datatype, int root);
MESHCOLL_API int meshcoll_allgather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                    meshcoll_datatype_t datatype);
MESHCOLL_API int meshcoll_reduce_scatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                         meshcoll_datatype_t datatype, meshcoll_op_t op);
MESHCOLL_API int meshcoll_allreduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                    meshcoll_datatype_t datatype, meshcoll_op_t op);
MESHCOLL_API int meshcoll_alltoall(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                   meshcoll_datatype_t datatype);
MESHCOLL_API int meshcoll_barrier(meshcoll_t *mesh);
/** @} */

/** @name Blocking calls with blocks of unequal sizes
 * @{ */
/**
 * The same with blocks of unequal sizes: rank r's has counts[r] elements and starts displs[r] elements
 * into the buffer that holds all blocks. displs NULL: back to back in rank order. Both arrays have
 * size() entries and are read before the call returns. Blocks of an output must not overlap.
 *
 * Unlike in MPI, all ranks give the same `counts`, also where they are not the root: a block may pass
 * other ranks on its way. displs are for the ranks that have the buffer. `count` is counts[rank].
 * In place: this rank's block of the other buffer (out == in + displs[rank] elements, or the reverse).
 *
 * Of an alltoallv a rank knows its own counts only: in_counts[r] elements go to rank r, where they are
 * its out_counts of this rank. So it goes straight from rank to rank, unless a strategy is forced for
 * it or for alltoall. Where that takes blocks over other ranks, an alltoall of the counts goes first, by
 * the same way: of a call each time, which then waits, also one that would not (meshcoll_ialltoallv); of
 * a persistent request once, when it is made. Strategies of more than three exchanges are refused
 * (ERR_STRATEGY). In place: in == out, with the same counts and displs for both.
 */
MESHCOLL_API int meshcoll_scatterv(meshcoll_t *mesh, const void *in, const size_t *counts,
                                   const size_t *displs, void *out, size_t count,
                                   meshcoll_datatype_t datatype, int root);
MESHCOLL_API int meshcoll_gatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                                  const size_t *counts, const size_t *displs,
                                  meshcoll_datatype_t datatype, int root);
MESHCOLL_API int meshcoll_allgatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                                     const size_t *counts, const size_t *displs,
                                     meshcoll_datatype_t datatype);
MESHCOLL_API int meshcoll_reduce_scatterv(meshcoll_t *mesh, const void *in, void *out,
                                          const size_t *counts, meshcoll_datatype_t datatype,
                                          meshcoll_op_t op);
MESHCOLL_API int meshcoll_alltoallv(meshcoll_t *mesh, const void *in, const size_t *in_counts,
                                    const size_t *in_displs, void *out, const size_t *out_counts,
                                    const size_t *out_displs, meshcoll_datatype_t datatype);
/** @} */

/** One operation's arguments, for requests. `size` as in meshcoll_params_t. */
typedef struct {
    size_t size;                      /**< sizeof(meshcoll_args_t), in bytes */
    meshcoll_collective_t collective; /**< what runs */
    const void *in;                   /**< the caller's; may be read until it is complete */
    void *out;                        /**< the caller's; the library's until it is complete */
    size_t count;                     /**< elements, as the blocking call takes them */
    meshcoll_datatype_t datatype;     /**< of the elements */
    meshcoll_op_t op;                 /**< where the collective reduces */
    int root;                         /**< where the collective has one */
    /** Forces a strategy for this request only; NULL: the mesh's or the planner's */
    const char *strategy;
    /** Blocks of unequal sizes in elements, as the v-variants take them: NULL for equal ones. Read by
     * the call, or when a request is made, not later. Of alltoall, `counts` and `displs` are out's. */
    const size_t *counts, *displs; /**< in elements: where each block starts; NULL: back to back */
    const size_t *in_counts /**< of alltoall: in's */, *in_displs; /**< of alltoall: in's */
} meshcoll_args_t;

/** @name Persistent requests
 * @{ */
/**
 * A persistent operation: plan, bind and allocate once; each start and wait repeats it on the same
 * buffers without planning or allocating. Made by a collective's own function, with the arguments of
 * the blocking call, or by meshcoll_init from any arguments. All of these are collective and may block,
 * as new connections are greeted: all ranks call them in the same order, relative to each other and to
 * the calls. Starts may come in any order. The request is the caller's until meshcoll_free.
 * Errors: those of the blocking call; ERR_INVALID_ARG to start what was started before, until wait or
 * test (or one of those below) has told that it is complete.
 * Inside a box in and out are put into huge pages where they fill some (docs/calling.md), which takes 0.3 to 3 ms a MiB.
 */
MESHCOLL_API int meshcoll_init(meshcoll_t *mesh, const meshcoll_args_t *args,
                               meshcoll_request_t **request);
MESHCOLL_API int meshcoll_bcast_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                     meshcoll_datatype_t datatype, int root,
                                     meshcoll_request_t **request);
MESHCOLL_API int meshcoll_reduce_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                      meshcoll_datatype_t datatype, meshcoll_op_t op, int root,
                                      meshcoll_request_t **request);
MESHCOLL_API int meshcoll_scatter_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                       meshcoll_datatype_t datatype, int root,
                                       meshcoll_request_t **request);
MESHCOLL_API int meshcoll_gather_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                      meshcoll_datatype_t datatype, int root,
                                      meshcoll_request_t **request);
MESHCOLL_API int meshcoll_allgather_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                         meshcoll_datatype_t datatype,
                                         meshcoll_request_t **request);
MESHCOLL_API int meshcoll_reduce_scatter_init(meshcoll_t *mesh, const void *in, void *out,
                                              size_t count, meshcoll_datatype_t datatype,
                                              meshcoll_op_t op, meshcoll_request_t **request);
MESHCOLL_API int meshcoll_allreduce_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                         meshcoll_datatype_t datatype, meshcoll_op_t op,
                                         meshcoll_request_t **request);
MESHCOLL_API int meshcoll_alltoall_init(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                        meshcoll_datatype_t datatype, meshcoll_request_t **request);
MESHCOLL_API int meshcoll_scatterv_init(meshcoll_t *mesh, const void *in, const size_t *counts,
                                        const size_t *displs, void *out, size_t count,
                                        meshcoll_datatype_t datatype, int root,
                                        meshcoll_request_t **request);
MESHCOLL_API int meshcoll_gatherv_init(meshcoll_t *mesh, const void *in, size_t count, void *out,
                                       const size_t *counts, const size_t *displs,
                                       meshcoll_datatype_t datatype, int root,
                                       meshcoll_request_t **request);
MESHCOLL_API int meshcoll_allgatherv_init(meshcoll_t *mesh, const void *in, size_t count, void *out,
                                          const size_t *counts, const size_t *displs,
                                          meshcoll_datatype_t datatype,
                                          meshcoll_request_t **request);
MESHCOLL_API int meshcoll_reduce_scatterv_init(meshcoll_t *mesh, const void *in, void *out,
                                               const size_t *counts, meshcoll_datatype_t datatype,
                                               meshcoll_op_t op, meshcoll_request_t **request);
MESHCOLL_API int meshcoll_alltoallv_init(meshcoll_t *mesh, const void *in, const size_t *in_counts,
                                         const size_t *in_displs, void *out,
                                         const size_t *out_counts, const size_t *out_displs,
                                         meshcoll_datatype_t datatype,
                                         meshcoll_request_t **request);
MESHCOLL_API int meshcoll_barrier_init(meshcoll_t *mesh, meshcoll_request_t **request);
MESHCOLL_API int meshcoll_start(meshcoll_request_t *request);
/** @} */

/** @name Calls that do not wait
 * @{ */
/**
 * The same calls without waiting, and meshcoll_begin for any of them by its arguments. Called by all
 * ranks in the same order, relative to the blocking calls too; they may complete and be waited for in
 * any. Buffers stay the library's until then: `in` may be read, `out` neither read nor written. The
 * first call of a collective and root may block like meshcoll_init; later ones do not.
 *
 * *request is the caller's until it is told that the call is complete: when meshcoll_wait or _test (or
 * one of those below) returns anything but MESHCOLL_IN_PROGRESS for it, it is gone, and must not be
 * used again. Plans and memory of calls are kept in the mesh and serve again: a loop of the same calls
 * plans and allocates in its first round only.
 */
MESHCOLL_API int meshcoll_begin(meshcoll_t *mesh, const meshcoll_args_t *args,
                                meshcoll_request_t **request);
MESHCOLL_API int meshcoll_ibcast(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                 meshcoll_datatype_t datatype, int root,
                                 meshcoll_request_t **request);
MESHCOLL_API int meshcoll_ireduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                  meshcoll_datatype_t datatype, meshcoll_op_t op, int root,
                                  meshcoll_request_t **request);
MESHCOLL_API int meshcoll_iscatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                   meshcoll_datatype_t datatype, int root,
                                   meshcoll_request_t **request);
MESHCOLL_API int meshcoll_igather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                  meshcoll_datatype_t datatype, int root,
                                  meshcoll_request_t **request);
MESHCOLL_API int meshcoll_iallgather(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                     meshcoll_datatype_t datatype, meshcoll_request_t **request);
MESHCOLL_API int meshcoll_ireduce_scatter(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                          meshcoll_datatype_t datatype, meshcoll_op_t op,
                                          meshcoll_request_t **request);
MESHCOLL_API int meshcoll_iallreduce(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                     meshcoll_datatype_t datatype, meshcoll_op_t op,
                                     meshcoll_request_t **request);
MESHCOLL_API int meshcoll_ialltoall(meshcoll_t *mesh, const void *in, void *out, size_t count,
                                    meshcoll_datatype_t datatype, meshcoll_request_t **request);
MESHCOLL_API int meshcoll_iscatterv(meshcoll_t *mesh, const void *in, const size_t *counts,
                                    const size_t *displs, void *out, size_t count,
                                    meshcoll_datatype_t datatype, int root,
                                    meshcoll_request_t **request);
MESHCOLL_API int meshcoll_igatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                                   const size_t *counts, const size_t *displs,
                                   meshcoll_datatype_t datatype, int root,
                                   meshcoll_request_t **request);
MESHCOLL_API int meshcoll_iallgatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                                      const size_t *counts, const size_t *displs,
                                      meshcoll_datatype_t datatype, meshcoll_request_t **request);
MESHCOLL_API int meshcoll_ireduce_scatterv(meshcoll_t *mesh, const void *in, void *out,
                                           const size_t *counts, meshcoll_datatype_t datatype,
                                           meshcoll_op_t op, meshcoll_request_t **request);
MESHCOLL_API int meshcoll_ialltoallv(meshcoll_t *mesh, const void *in, const size_t *in_counts,
                                     const size_t *in_displs, void *out, const size_t *out_counts,
                                     const size_t *out_displs, meshcoll_datatype_t datatype,
                                     meshcoll_request_t **request);
MESHCOLL_API int meshcoll_ibarrier(meshcoll_t *mesh, meshcoll_request_t **request);
/** @} */

/** @name One request
 * @{ */
/**
 * Moves everything on that this thread has started, and says how the request stands: MESHCOLL_OK,
 * MESHCOLL_IN_PROGRESS (test only), or the error its run ended with. NULL is complete.
 */
MESHCOLL_API int meshcoll_test(meshcoll_request_t *request);
MESHCOLL_API int meshcoll_wait(meshcoll_request_t *request);
/** @} */

/** @name Several requests
 * @{ */
/**
 * The same for `n` requests, of one mesh or several. Entries that are NULL, or persistent and not
 * started since they were told of, are left out; a call's entry becomes NULL when it is told of.
 * waitall and testall tell of all together when all are complete, or of one that failed, whose error
 * they return (it is NULL then, or the persistent one's status says so). waitany and testany tell of
 * one, its place in *index and its status returned; *index is -1 where all were left out.
 */
MESHCOLL_API int meshcoll_waitall(int n, meshcoll_request_t **requests);
MESHCOLL_API int meshcoll_testall(int n, meshcoll_request_t **requests);
MESHCOLL_API int meshcoll_waitany(int n, meshcoll_request_t **requests, int *index);
MESHCOLL_API int meshcoll_testany(int n, meshcoll_request_t **requests, int *index);
/** @} */

/** @name Groups of calls
 * @{ */
/**
 * A group: the calls on this mesh between begin and end, blocking or not, only note what they are
 * asked; end starts them all and waits until all are complete. So a call in a group returns at once,
 * and one that does not wait sets *request to NULL. Buffers, and the arrays and texts given to a call,
 * must stay until the end; what a call gets must be no other call's in the same group.
 *
 * Small calls of the same collective, datatype, operation and root are packed into one, where the
 * links say that this is cheaper; each element's result is that of one call over their vectors laid end
 * to end. All ranks make the same calls in the same order in a group, and end it at the same place
 * among their other calls.
 *
 * Groups do not nest (ERR_INVALID_ARG), and belong to one thread. Persistent requests are not part of
 * them: making, starting and waiting for them act at once. Where a call in the group was refused, end starts
 * none and returns its status. meshcoll_destroy forgets the calls of an open group, which
 * meshcoll_last_error() tells.
 */
MESHCOLL_API int meshcoll_group_begin(meshcoll_t *mesh);
MESHCOLL_API int meshcoll_group_end(meshcoll_t *mesh);
/** @} */

/** For a persistent request, or a call that nobody will wait for; NULL is allowed. One that runs is
 * released when it is complete, and its buffers must stay until then. */
MESHCOLL_API void meshcoll_free(meshcoll_request_t *request);

/** The strategy a request runs, as text; owned by the request; NULL where `request` is. */
MESHCOLL_API const char *meshcoll_request_strategy(const meshcoll_request_t *request);

/** Time the cost model predicts for a request, in seconds; 0 where it is NULL. */
MESHCOLL_API double meshcoll_request_predicted(const meshcoll_request_t *request);

/**
 * For people: for each call this rank has run so far (collective, bytes, root, strategy) why that
 * strategy, what was predicted and what was measured, phase by phase. The text is the caller's to
 * free(). Not collective; complete requests only count. Errors: ERR_INVALID_ARG where the mesh was
 * created without MESHCOLL_EXPLAIN or meshcoll_params_t.explain. At meshcoll_destroy rank 0 prints its
 * own by itself.
 */
MESHCOLL_API int meshcoll_explain(const meshcoll_t *mesh, char **text);

/**
 * Payload bytes this rank has sent over links of dimension `dim` (0 = outermost) since the handle
 * was made. A message between ranks that differ in several dimensions counts for the outermost.
 * 0 where there is no such dimension.
 */
MESHCOLL_API uint64_t meshcoll_bytes_sent(const meshcoll_t *mesh, int dim);

#ifdef __cplusplus
}
#endif

#endif
