/** @file
 * meshcoll: collectives composed over a mesh of ranks.
 *
 * Functions that return a status return MESHCOLL_OK (0), MESHCOLL_IN_PROGRESS where they say so, or
 * a negative error; meshcoll_last_error() then describes the error in a sentence. Outputs are the
 * last arguments and are set only on success. Handles are opaque. Buffers are host memory; where
 * meshcoll/gpu.h says so, and in blocking calls and persistent requests, they may be a GPU's.
 *
 * Threads: by default one thread at a time uses a mesh and its requests, and the thread that starts
 * a request also waits for it. A waiting thread progresses everything it has started, on all its
 * meshes. With a progress thread, or MESHCOLL_THREADS=multiple, any thread may call and wait at any
 * time, but only one thread at a time for each request. The program must still make calls in the
 * same order on all ranks, and use a single thread to create and to destroy a mesh.
 *
 * Fork: a mesh belongs to the process that has made it. A child of fork cannot call on its parent's meshes
 * (ERR_UNSUPPORTED), and meshcoll_destroy only forgets them there: nothing of the parent's is touched. The
 * child may make meshes of its own.
 *
 * Meshes of processes that are already in one job share its connections and threads, whatever makes them
 * (docs/calling.md). With MESHCOLL_THREADS=single only meshes that the same thread has made share them, and one
 * thread at a time uses all of these.
 *
 * Failure: a run that fails ends everything that runs on its mesh on this rank, with the same
 * error, and the mesh runs nothing more. Meshes that share connections, as sub-meshes and groups do with the
 * mesh that they were made from, fail together. The buffers of these runs must stay valid until
 * meshcoll_destroy: where a network card accesses them by RDMA, or a rank of this machine was in the middle of
 * a write to them, a peer may still read or write them. All other ranks are notified, and fail with an error that names the first cause when they wait or make
 * their next call. The same holds if a process ends or a machine cannot be reached (docs/troubleshooting.md).
 * A call that is refused for its arguments leaves the mesh as it was if all ranks are refused it; if only
 * some are, the mesh fails.
 *
 * Shapes follow NCCL. For broadcast, reduce and allreduce `count` is the number of elements of the
 * whole vector. For scatter, gather, allgather and reduce-scatter it is that of one rank's block;
 * the other buffer holds size() blocks in rank order. For alltoall it is that of one block; both
 * buffers hold size() blocks, `in` by destination and `out` by source.
 *
 * Ranks are always the caller's (those of the communicator, or of meshcoll_oob_t): in arguments, in
 * the order of blocks and in messages. Where they are not placed box by box, the mesh orders them
 * otherwise internally, which shows only in the order in which sums are added up.
 */
#ifndef MESHCOLL_MESHCOLL_H
#define MESHCOLL_MESHCOLL_H

#include <meshcoll/callback.h>
#include <meshcoll/datatypes.h>
#include <meshcoll/fault.h>
#include <meshcoll/gpu.h>
#include <meshcoll/group.h>
#include <meshcoll/message.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** All statuses: X(name, value, description). Errors are negative. */
#define MESHCOLL_STATUS_TABLE(X) X(OK, 0, "success") MESHCOLL_STATUS_OTHERS(X)
/** All statuses but MESHCOLL_OK. */
#define MESHCOLL_STATUS_OTHERS(X)                                               \
    X(IN_PROGRESS, 1, "not complete yet")                                       \
    X(ERR_INVALID_ARG, -1, "an argument is invalid")                            \
    X(ERR_NO_MEMORY, -2, "out of memory")                                       \
    X(ERR_PARSE, -3, "a text cannot be parsed")                                 \
    X(ERR_MESH, -4, "the mesh does not fit")                                    \
    X(ERR_STRATEGY, -5, "the strategy does not fit the collective or the mesh") \
    X(ERR_PLAN, -6, "a plan is inconsistent")                                   \
    X(ERR_TRANSPORT, -7, "a transport failed")                                  \
    X(ERR_UNSUPPORTED, -8, "not supported")                                     \
    X(ERR_IO, -9, "a file could not be read or written")                        \
    X(ERR_TRUNCATED, -10, "a message is longer than its buffer")                \
    X(ERR_TIMEOUT, -11, "a peer was waited for too long")                       \
    X(ERR_ABORTED, -12, "the mesh was aborted")                                 \
    X(ERR_PEER, -13, "a peer ended or failed")                                  \
    X(ERR_MISMATCH, -14, "the ranks disagree about a call")                     \
    X(ERR_DEVICE, -15, "a GPU or its driver failed")                            \
    X(ERR_SYSTEM, -16, "the system gives no more threads or descriptors")

/** The statuses that functions return; meshcoll_status_string() describes them. */
typedef enum {
#define X(name, value, text) MESHCOLL_##name = value,
    MESHCOLL_STATUS_OTHERS(X)
#undef X
        MESHCOLL_OK = 0 /* the last has no comma after it, in C89 and C++98 */
} meshcoll_status_t;

/** The collectives; their names in texts are "bcast", "reduce_scatter", …. */
typedef enum {
    MESHCOLL_BCAST,          /**< copies the root's vector to all ranks */
    MESHCOLL_REDUCE,         /**< reduces the vectors of all ranks to the root */
    MESHCOLL_SCATTER,        /**< sends each rank its block of the root's vector */
    MESHCOLL_GATHER,         /**< collects the block of each rank at the root */
    MESHCOLL_ALLGATHER,      /**< collects the block of each rank at all ranks */
    MESHCOLL_REDUCE_SCATTER, /**< reduces the vectors of all ranks; each rank receives its block */
    MESHCOLL_ALLREDUCE,      /**< reduces the vectors of all ranks to all ranks */
    MESHCOLL_ALLTOALL,       /**< sends a block from each rank to each rank */
    MESHCOLL_COLLECTIVES     /**< the number of collectives */
} meshcoll_collective_t;

/** Description of a status: a static string, never NULL. */
MESHCOLL_API const char *meshcoll_status_string(int status);

/** A sentence about this thread's last failure, "" if there was none; valid until its next call. */
MESHCOLL_API const char *meshcoll_last_error(void);

/** Records `sentence` as this thread's last failure and returns `status`, for libraries on top. */
MESHCOLL_API int meshcoll_fail(int status, const char *sentence);

#define MESHCOLL_VERSION_MAJOR 0 /**< of these headers; CMakeLists.txt reads the numbers here */
#define MESHCOLL_VERSION_MINOR 1 /**< of these headers */
#define MESHCOLL_VERSION_PATCH 0 /**< of these headers */
/** The version of these headers as one number that rises: 10000 * major + 100 * minor + patch. */
#define MESHCOLL_VERSION_CODE \
    (MESHCOLL_VERSION_MAJOR * 10000 + MESHCOLL_VERSION_MINOR * 100 + MESHCOLL_VERSION_PATCH)

/** The library's version, "major.minor.patch": a static string. */
MESHCOLL_API const char *meshcoll_version(void);

/** A collective's name as used in texts ("bcast"): a static string; NULL when out of range. */
MESHCOLL_API const char *meshcoll_collective_name(meshcoll_collective_t collective);

/** A mesh of ranks with its transports. Each rank has one handle. */
typedef struct meshcoll meshcoll_t;

/** One operation: a nonblocking call, or a persistent operation. */
typedef struct meshcoll_request meshcoll_request_t;

/**
 * Parameters of meshcoll_create. Those of rank 0, and its environment, hold for all ranks; only
 * `hook` is each rank's own.
 * Zero-initialise the struct and set `size` to sizeof(meshcoll_params_t): fields beyond `size`
 * bytes have their defaults, so that the struct can grow. A NULL text means "not given"; texts are
 * copied.
 */
typedef struct meshcoll_params {
    size_t size; /**< sizeof(meshcoll_params_t), in bytes */
    /** The mesh, outermost dimension first: "box=4,gpu=8", in short "4x8". The product of the
     * extents is the number of ranks. Ranks fill the mesh in their order; but if the dimension "box"
     * is as long as there are boxes, they fill it box by box. Boxes of unequal sizes are "box=8+8+4", a mesh with
     * dimensions box, gpu and fold in which adjacent ranks of a box differ in fold
     * (docs/ragged.md). At most 2^19 ranks. Default: MESHCOLL_MESH, else discovered: ranks
     * that can share memory form a box; and where every NUMA node (or socket) of every box has the
     * same number of ranks bound to it, these form a "numa" (or "socket"). Ranks inside
     * are "gpu", or "rank" where no machine has GPUs; either name finds the other in texts of links
     * and strategies. "": discovered, also where MESHCOLL_MESH is set, as for a mesh of some of the
     * job's processes. */
    const char *mesh;
    /** Link models: the name of a preset, or a list per dimension, as for `meshcoll plan --links`.
     * Default: MESHCOLL_LINKS, else what `meshcoll tune` measured on this cluster, else the default
     * preset of docs/links.md. */
    const char *links;
    /** Transports per dimension, "box=tcp,self@eth0;gpu=shm". Each is a list of UCX's transports,
     * after "@" the network devices that they bind to (none: those of MESHCOLL_NET_DEVICES, see
     * docs/launch.md); or "shm", meshcoll's own shared memory; or "shm:copy", the same without
     * reading the memory of other processes. Where processes may not open each other's shared
     * memory either, another transport replaces both (docs/security.md). While a mesh uses "shm",
     * any process of this user may trace this one even where Yama would allow only its parents.
     * Default: MESHCOLL_TRANSPORTS, else network transports between boxes and shm inside a box. */
    const char *transports;
    /** What meshcoll_explain reports: "1", "factor:3", "report.txt"; docs/troubleshooting.md has the
     * grammar. Default: MESHCOLL_EXPLAIN, else nothing is recorded. */
    const char *explain;
    /** What progresses messages while the program computes: "none", only calls of meshcoll
     * functions; or "thread", a thread of the mesh, which sleeps while there is nothing to do.
     * Default: MESHCOLL_PROGRESS, else "none". */
    const char *progress;
    /** "single": one thread at a time uses the mesh and its requests; "multiple": any threads do.
     * With a progress thread any may. Default: MESHCOLL_THREADS, else "single". */
    const char *threads;
    /** "1": results of reductions depend, bit by bit, only on the ranks' values and their number,
     * not on the placement of ranks or on strategies (docs/reproducible.md, also on its cost). "0":
     * they may depend on these. Default: MESHCOLL_REPRODUCIBLE, else "0". */
    const char *reproducible;
    /** What calls of this rank on the mesh and its sub-meshes run while they wait. Default: none;
     * meshcoll_create of meshcoll/mpi.h sets one that progresses MPI. */
    meshcoll_hook_t hook;
    void *hook_context; /**< passed to every call of `hook`; stays the caller's */
    /** The monitor, a thread by which processes tell each other of deaths and failures
     * (docs/troubleshooting.md): the seconds, 2 at least, after which a machine that does not answer counts as
     * down, or "off". Default: MESHCOLL_MONITOR, else "4". */
    const char *monitor;
    /** How long a request may run, in seconds ("90"); "0": without limit (meshcoll/fault.h).
     * Default: MESHCOLL_TIMEOUT, else "1800". */
    const char *timeout;
    /** "1": all ranks compare each call before any of its data moves, and get ERR_MISMATCH if they
     * disagree; the mesh can still be used (docs/troubleshooting.md). "0": ranks compare a call only where it
     * makes new connections, and a disagreement ends the mesh. Default: MESHCOLL_CHECK, else "0". */
    const char *check;
    /** The order in which ranks fill the mesh: "0,2,1,3" puts rank 2 where rank 1 would be,
     * "8-15,0-7" is sixteen ranks, and `meshcoll overlay` finds one for a network. Ranks of a box
     * stay together where they would without it. Arguments and blocks keep the ranks' own numbers.
     * "": in their order. Default: MESHCOLL_ORDER (not where `mesh` is ""), else "". */
    const char *order;
} meshcoll_params_t;

/**
 * The out-of-band allgather through which meshcoll_create_oob exchanges addresses. It is called
 * only during meshcoll_create_oob and, where there are no monitors, meshcoll_destroy, as a barrier. `context` must
 * live until then; the struct itself only until meshcoll_create_oob returns.
 */
typedef struct {
    int rank /**< this rank, from 0 on */, size; /**< the number of ranks */
    void *context;                               /**< passed to every call; stays the caller's */
    /** Gathers the `bytes` bytes at `in` of each rank into `out`, which has size * bytes, in rank
     * order. Returns 0 on success. Both buffers are the library's. */
    int (*allgather)(void *context, const void *in, void *out, size_t bytes);
} meshcoll_oob_t;

/** Creates a mesh over an out-of-band allgather; meshcoll/env.h creates one of a job's processes,
 * meshcoll/mpi.h of an MPI communicator's. *mesh is the caller's to destroy with meshcoll_destroy.
 * `params` may be NULL. Collective over all ranks. Errors: ERR_INVALID_ARG and ERR_PARSE for a
 * setting, ERR_MESH (it names meshes that would fit), ERR_TRANSPORT, ERR_NO_MEMORY, ERR_SYSTEM. */
MESHCOLL_API int meshcoll_create_oob(const meshcoll_oob_t *oob, const meshcoll_params_t *params,
                                     meshcoll_t **mesh);

/**
 * Creates the sub-mesh of the ranks that differ from this one only in the dimensions `dims` ("gpu",
 * "box,gpu"). For dp=2,tp=4, "tp" gives two tensor-parallel groups of four, and "dp" four
 * data-parallel groups of two. Its dimensions are in the order of those of `mesh`, its ranks row by
 * row. It may be used concurrently with `mesh` and other sub-meshes, and split again. It shares the
 * connections of `mesh`. Its links are those of `mesh`, priced as if all sub-meshes of the split ran at
 * once. Strategies forced by the environment hold where they fit it. meshcoll_create_group
 * (meshcoll/group.h) makes meshes of any ranks.
 *
 * Boxes of unequal sizes split by "gpu,fold", into boxes, or by all three dimensions;
 * ERR_UNSUPPORTED otherwise. Collective over the ranks of the sub-mesh.
 * Other errors: ERR_INVALID_ARG if there is no such dimension or a group is open on `mesh`,
 * ERR_UNSUPPORTED where a rank is in 4095 sub-meshes and groups already, ERR_MISMATCH where ranks of the
 * sub-mesh disagree about `dims`, ERR_TRANSPORT, ERR_NO_MEMORY.
 */
MESHCOLL_API int meshcoll_split(meshcoll_t *mesh, const char *dims, meshcoll_t **sub);

/** Destroys a mesh, a sub-mesh or a group, and what was made from it; NULL is allowed. All its ranks call it,
 * in any order with other calls and destructions. It waits for no other rank; after calls on device memory it waits
 * until what this rank launched is complete, and memory of its GPU is freed when all ranks have destroyed the mesh.
 * Only when a rank destroys the last of the meshes that share connections, it waits until all ranks have done so, or
 * for the time limit of that mesh. What was made from the mesh refuses calls from then on (ERR_INVALID_ARG) and may
 * still be destroyed. What it does in a callback: meshcoll/callback.h.
 *
 * All requests should be complete. Those that still run may go on, which meshcoll_last_error() then says, until the
 * last of these meshes is destroyed; then they are abandoned and can only be freed. Their buffers must stay valid
 * until then. */
MESHCOLL_API void meshcoll_destroy(meshcoll_t *mesh);

/** The number of this rank, from 0 on; ERR_INVALID_ARG (negative) if `mesh` is NULL. */
MESHCOLL_API int meshcoll_rank(const meshcoll_t *mesh);
/** The number of ranks of the mesh; ERR_INVALID_ARG (negative) if `mesh` is NULL. */
MESHCOLL_API int meshcoll_size(const meshcoll_t *mesh);

/** The mesh's text, "box=4,gpu=8" or "box=8+8+4", owned by the handle; NULL if `mesh` is. */
MESHCOLL_API const char *meshcoll_mesh_text(const meshcoll_t *mesh);

/** The coordinate of a rank along dimension `dim` (0 = outermost), from 0 on; ERR_INVALID_ARG
 * (negative) if there is no such rank or dimension. */
MESHCOLL_API int meshcoll_coord(const meshcoll_t *mesh, int rank, int dim);

/**
 * Forces the strategy of one collective on this mesh; all ranks must pass the same. `strategy` is a
 * strategy's text ("scatter:mst(box) bcast:mst(gpu) allgather:ring(box) segments=8"), a named entry
 * ("option2", "flat-ring"), or NULL to let the planner choose again. It is copied. The environment
 * does the same for a whole run: MESHCOLL_STRATEGY_BCAST=…, MESHCOLL_STRATEGY_ALLREDUCE=…; this
 * function overrides it. ERR_STRATEGY with the reason if it does not fit.
 */
MESHCOLL_API int meshcoll_set_strategy(meshcoll_t *mesh, meshcoll_collective_t collective,
                                       const char *strategy);

/** @name Blocking calls
 * @{ */
/**
 * The eight collectives, and a barrier. All ranks of the mesh call them in the same order. `count`
 * is in elements, per vector or per block as described at the top of this file.
 *
 * In place: where both buffers hold the whole vector, or a block for every rank, in == out. Where
 * one holds a single block, it is this rank's block of the other (out == in + rank * count
 * elements, or the reverse). `in` is never modified unless in place. A buffer that this rank does
 * not use may be NULL.
 *
 * Errors: ERR_INVALID_ARG (a buffer, root, datatype or operation does not fit), ERR_STRATEGY (a
 * forced strategy does not fit), ERR_NO_MEMORY, ERR_MISMATCH (docs/troubleshooting.md), and
 * ERR_TRANSPORT, after which the mesh runs nothing more.
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
 * The collectives with blocks of unequal sizes. Rank r's block has counts[r] elements and starts
 * displs[r] elements into the buffer that holds all blocks; displs == NULL: back to back in rank
 * order. Both arrays have size() entries, read before the call returns. Blocks of an output must
 * not overlap, nor one of in and one of out, but for in place; empty ones may lie anywhere. `count`
 * is counts[rank]. In place: out == in + displs[rank] elements, or the reverse.
 *
 * Unlike in MPI, all ranks pass the same `counts`, also where they are not the root: a block may
 * pass through other ranks. displs are read only where the buffer is. The functions …_at_root
 * follow MPI: only the root passes counts and displs (NULL elsewhere), other ranks only their own
 * `count`, which must equal the root's. The root exchanges each block directly with its rank then;
 * ERR_STRATEGY if the call gives a strategy other than a star along all dimensions.
 *
 * For an alltoallv a rank passes only its own counts: in_counts[r] elements go to rank r, whose
 * out_counts of this rank must be equal. Blocks are therefore sent directly, unless a strategy is
 * forced for it or for alltoall. Where that strategy passes blocks through other ranks, an alltoall
 * of the counts precedes, by the same strategy: for each call, as a part of it, and for a persistent
 * request once, from when it is made. If the counts differ, the mesh fails on the ranks that find
 * out. Strategies of more than three exchanges fail with ERR_STRATEGY. In place: in == out, with the
 * same counts and displs for both.
 */
MESHCOLL_API int meshcoll_scatterv(meshcoll_t *mesh, const void *in, const size_t *counts,
                                   const size_t *displs, void *out, size_t count,
                                   meshcoll_datatype_t datatype, int root);
MESHCOLL_API int meshcoll_gatherv(meshcoll_t *mesh, const void *in, size_t count, void *out,
                                  const size_t *counts, const size_t *displs,
                                  meshcoll_datatype_t datatype, int root);
MESHCOLL_API int meshcoll_scatterv_at_root(meshcoll_t *mesh, const void *in, const size_t *counts,
                                           const size_t *displs, void *out, size_t count,
                                           meshcoll_datatype_t datatype, int root);
MESHCOLL_API int meshcoll_gatherv_at_root(meshcoll_t *mesh, const void *in, size_t count, void *out,
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

/** The arguments of one operation, for meshcoll_begin and meshcoll_init. `size` works as in
 * meshcoll_params_t; fields are given up to `root`, up to `strategy`, up to `in_displs`, or all. */
typedef struct meshcoll_args {
    size_t size;                      /**< sizeof(meshcoll_args_t), in bytes */
    meshcoll_collective_t collective; /**< the collective */
    const void *in; /**< input; the caller's, and read until the operation is complete */
    void *out;      /**< output; the library's until the operation is complete */
    size_t count;   /**< in elements, as for the blocking call */
    meshcoll_datatype_t datatype; /**< of the elements */
    meshcoll_op_t op;             /**< used where the collective reduces */
    int root;                     /**< used where the collective has a root */
    /** Forces a strategy for this request only; NULL: the mesh's, or the planner's. */
    const char *strategy;
    /** Blocks of unequal sizes in elements, as for the v-variants; NULL: equal blocks. Read when the
     * call or request is made, not later. For alltoall, `counts` and `displs` describe out. */
    const size_t *counts, *displs; /**< in elements: where each block starts; NULL: back to back */
    const size_t *in_counts /**< of alltoall: in's */, *in_displs; /**< of alltoall: in's */
    /** Who passes `counts` and `displs` of a scatter or gather, the same on all ranks: 1, the root
     * alone, as for meshcoll_scatterv_at_root; 0, all ranks. */
    int counts_at_root;
} meshcoll_args_t;

/** @name Persistent requests
 * @{ */
/**
 * Creates a persistent operation: planned, bound and allocated once; every meshcoll_start and wait
 * repeats it on the same buffers without planning or allocating, except at starts that change to
 * another strategy while the request learns (docs/calling.md; never with MESHCOLL_ADAPT=off). Each
 * collective has a function that takes the arguments of the blocking call; meshcoll_init takes any.
 *
 * These functions are collective, but wait for no other rank: all ranks call them in the same order,
 * relative to each other and to other calls. Starts may be in any order, and wait for nobody either:
 * new connections are set up in the background, and the first run begins when they are. *request is
 * the caller's until meshcoll_free.
 *
 * Errors: those of the blocking call. meshcoll_start returns ERR_INVALID_ARG if the request was
 * started before and no wait or test has returned its completion.
 *
 * Inside a box, in and out are moved into huge pages where they fill some, once per request, which
 * takes time (docs/calling.md).
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
MESHCOLL_API int meshcoll_scatterv_at_root_init(meshcoll_t *mesh, const void *in,
                                                const size_t *counts, const size_t *displs,
                                                void *out, size_t count,
                                                meshcoll_datatype_t datatype, int root,
                                                meshcoll_request_t **request);
MESHCOLL_API int meshcoll_gatherv_at_root_init(meshcoll_t *mesh, const void *in, size_t count,
                                               void *out, const size_t *counts,
                                               const size_t *displs, meshcoll_datatype_t datatype,
                                               int root, meshcoll_request_t **request);
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

/** @name Nonblocking calls
 * @{ */
/**
 * The nonblocking calls, and meshcoll_begin for any of them by its arguments. All ranks call them
 * in the same order, relative to the blocking calls too; they may complete, and be waited for, in
 * any order. Until a call is complete its buffers belong to the library: the program may read `in`,
 * and must neither read nor write `out`. They never wait for another rank, whether it has made the
 * same call or not.
 *
 * *request is the caller's until meshcoll_wait, meshcoll_test or a function below returns its
 * completion: anything but MESHCOLL_IN_PROGRESS. It is freed then, and must not be used again. The
 * mesh keeps plans and memory of calls for reuse: a loop of the same calls plans and allocates only
 * in its first round.
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
MESHCOLL_API int meshcoll_iscatterv_at_root(meshcoll_t *mesh, const void *in, const size_t *counts,
                                            const size_t *displs, void *out, size_t count,
                                            meshcoll_datatype_t datatype, int root,
                                            meshcoll_request_t **request);
MESHCOLL_API int meshcoll_igatherv_at_root(meshcoll_t *mesh, const void *in, size_t count,
                                           void *out, const size_t *counts, const size_t *displs,
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
 * Progresses everything that this thread has started, and returns the status of the request:
 * MESHCOLL_OK, MESHCOLL_IN_PROGRESS (meshcoll_test only), or the error its run ended with. NULL
 * counts as complete. On a mesh with more ranks than cores, a test that finds nothing gives its
 * core to another process or thread that wants it (sched_yield), as a wait does.
 */
MESHCOLL_API int meshcoll_test(meshcoll_request_t *request);
MESHCOLL_API int meshcoll_wait(meshcoll_request_t *request);
/** @} */

/** @name Several requests
 * @{ */
/**
 * Do the same for `n` requests, of one mesh or several. Entries are ignored that are NULL, or
 * persistent and not started since their completion was returned. An entry of a nonblocking call
 * becomes NULL when its completion is returned.
 *
 * waitall and testall return when all are complete; or when one has failed, with its error (its
 * entry is NULL then, or the persistent request's status is that error). waitany and testany return
 * the status of one complete request, and its position in *index; *index is -1 if all entries were
 * ignored.
 */
MESHCOLL_API int meshcoll_waitall(int n, meshcoll_request_t **requests);
MESHCOLL_API int meshcoll_testall(int n, meshcoll_request_t **requests);
MESHCOLL_API int meshcoll_waitany(int n, meshcoll_request_t **requests, int *index);
MESHCOLL_API int meshcoll_testany(int n, meshcoll_request_t **requests, int *index);
/** @} */

/** @name Groups of calls
 * @{ */
/**
 * A group of calls; meshcoll_create_group makes a group of ranks, which is something else. Calls on this mesh
 * between begin and end, blocking or nonblocking, only store their arguments. meshcoll_group_end starts them all
 * and waits until all are complete. A call in a group
 * returns at once, and a nonblocking one sets *request to NULL. Buffers, arrays and texts passed to
 * a call must stay valid until the end. The output of a call must not be a buffer of another call
 * in the same group.
 *
 * Small calls of the same collective, datatype, operation and root are packed into one, where the
 * link model says that this is cheaper. The result of each element is that of a single call over
 * their vectors laid end to end. All ranks make the same calls in the same order in a group, and
 * end it at the same place among their other calls.
 *
 * Groups do not nest (ERR_INVALID_ARG) and belong to one thread. Persistent requests are not part
 * of a group: creating, starting and waiting for them take effect at once. If a call in the group
 * was refused, the end starts none and returns its status. meshcoll_destroy drops the calls of an
 * open group, which meshcoll_last_error() then says.
 */
MESHCOLL_API int meshcoll_group_begin(meshcoll_t *mesh);
MESHCOLL_API int meshcoll_group_end(meshcoll_t *mesh);
/** @} */

/** Frees a persistent request, or the request of a call that nobody will wait for; NULL is allowed.
 * A running one is freed when it is complete, and its buffers must stay valid until then. */
MESHCOLL_API void meshcoll_free(meshcoll_request_t *request);

/** The text of a request's strategy, owned by the request; NULL if `request` is. Of a persistent one:
 * of its present or last run; it stays valid, where a later start changes to another strategy too. */
MESHCOLL_API const char *meshcoll_request_strategy(const meshcoll_request_t *request);

/** The time that the cost model predicts for a request, in seconds; 0 if `request` is NULL. */
MESHCOLL_API double meshcoll_request_predicted(const meshcoll_request_t *request);

/**
 * Writes a report for people: for each call this rank has run (collective, bytes, root, strategy),
 * why that strategy was chosen, and the predicted and measured time, phase by phase; for a call on
 * device memory how it ran there, and its time as a whole. Only complete requests count. *text is the
 * caller's to free(). Not collective. ERR_INVALID_ARG if the mesh was created without MESHCOLL_EXPLAIN or
 * meshcoll_params_t.explain. meshcoll_destroy writes the report of rank 0 to where that setting says.
 */
MESHCOLL_API int meshcoll_explain(const meshcoll_t *mesh, char **text);

/**
 * The payload bytes this rank has sent over links of dimension `dim` (0 = outermost) since the
 * handle was created, from device memory too, where launches of a captured graph are not counted. A
 * message between ranks that differ in several dimensions counts for the outermost. 0 if there is no such
 * dimension.
 */
MESHCOLL_API uint64_t meshcoll_bytes_sent(const meshcoll_t *mesh, int dim);

#ifdef __cplusplus
}
#endif

#endif
