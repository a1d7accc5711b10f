/** @file
 * Collectives on GPU memory; meshcoll.h includes this file. docs/gpu.md says what works, and on what it was run.
 */
#ifndef MESHCOLL_GPU_H
#define MESHCOLL_GPU_H

#include <meshcoll/datatypes.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct meshcoll;
struct meshcoll_args;
struct meshcoll_request;

/** @name Calls in streams
 * @{ */
/**
 * Enqueues a collective on device memory in a CUDA stream: `stream` is a cudaStream_t or CUstream,
 * NULL the default stream. It begins when what was enqueued in the stream before it is done, and
 * what is enqueued after it waits for it. The host does not wait, except in the first such call of
 * a mesh, which is collective: there the ranks allocate memory on their GPUs and open each other's;
 * and in a few calls of those that come again, where ranks agree which strategy is the fastest: there
 * it may wait for a rank that is 16 such calls behind (docs/calling.md; never with MESHCOLL_ADAPT=off).
 *
 * `args` are those of meshcoll_begin, and are read before the call returns. All ranks make the same
 * calls in the same order, relative to their other calls too. Ranks may be on several machines;
 * where all are on one, several may share a GPU, and the call waits then where the driver's queue is
 * full. `in` and `out` are device or managed memory, on the same GPU in all calls of a mesh; they
 * belong to the library until the call is done in its stream. Calls of one mesh in several streams
 * run one after the other. While a stream is captured, the call becomes part of the graph; launches
 * of that graph must be ordered with other calls of the mesh by the program, and all ranks capture the
 * same calls. Where ranks of the mesh are on several machines, a call in a capture is refused.
 *
 * meshcoll_enqueue_request enqueues a persistent request on device memory (meshcoll_init), any
 * number of times; it takes part in the order of calls.
 *
 * Errors: those of the blocking calls. ERR_UNSUPPORTED: there is no CUDA driver, or the library was
 * built without kernels; ranks share a GPU, and others are on another machine, or
 * MESHCOLL_GPU_EXECUTOR is "kernel", or the driver is too old for that; a call in a capture between
 * machines; a user's operation, which runs on the host: a blocking call, and a persistent request
 * that meshcoll_start starts, copy the vector there and back; an alltoallv by a strategy that passes
 * blocks through other ranks, whose counts are exchanged first: a blocking call, and meshcoll_init
 * of a persistent request, wait for that.
 * ERR_INVALID_ARG also for memory of another kind, and in a group. ERR_DEVICE: the driver
 * failed; where other ranks might wait for this one, the mesh fails with it. meshcoll_async_error
 * reports what goes wrong later.
 */
MESHCOLL_API int meshcoll_enqueue(struct meshcoll *mesh, const struct meshcoll_args *args,
                                  void *stream);
MESHCOLL_API int meshcoll_enqueue_request(struct meshcoll_request *request, void *stream);
/** @} */

/** Device memory that is registered on a mesh. */
typedef struct meshcoll_registration meshcoll_registration_t;

/** @name Registered memory
 * @{ */
/**
 * Registers `bytes` bytes of device memory, from `buffer` on, for the calls of a mesh: the GPUs that
 * reach this rank's map them, and their ranks write messages of broadcasts, allgathers, allreduces
 * and alltoalls whose `out` lies there straight to it. Otherwise each message is copied from
 * memory of the library's (docs/gpu.md says which messages). Nothing else changes: calls take any memory,
 * registered or not.
 *
 * Collective; all ranks register as many bytes, each its own buffer within an allocation of
 * cudaMalloc, which other processes can access as a whole from then on. Buffers that are registered
 * on a mesh do not overlap. It waits for all ranks. Sub-meshes need registrations of their own.
 *
 * The program promises: if `out` of such a call on the mesh lies in a registration, it lies as a
 * whole in that registration on all ranks, and at the same offset; and an alltoall there is in place
 * on all ranks or on none. Only MESHCOLL_CHECK=1 checks that; where it does not hold, the contents
 * of registered memory are undefined. Peers may write to `out` from when the call begins in its
 * stream. So a call may wait there until other ranks have begun it, too.
 *
 * The memory must stay allocated until meshcoll_deregister has returned OK, or meshcoll_destroy has,
 * which ends all registrations of the mesh; of a mesh that failed until the processes of the other
 * ranks have ended.
 *
 * meshcoll_deregister is collective, too. It waits until all ranks have completed the calls that
 * they have enqueued; persistent requests that write to the memory must be freed before, and graphs
 * with such calls must neither run nor be launched any more. The registration is gone when it
 * returns OK, and stays otherwise.
 *
 * *registration is set on success. Errors, the same on all ranks: ERR_INVALID_ARG: host
 * memory, which needs no registration, or managed memory; memory of another GPU than the mesh's
 * calls use, of several allocations, or registered already; unequal numbers of bytes; a request that
 * is to be freed. ERR_UNSUPPORTED: the driver does not share this memory, as that of pools
 * (cudaMallocAsync) or of PyTorch's expandable segments: calls on it go on as without; or what
 * meshcoll_enqueue does not support. ERR_DEVICE: the driver failed; ERR_NO_MEMORY.
 */
MESHCOLL_API int meshcoll_register(struct meshcoll *mesh, void *buffer, size_t bytes,
                                   meshcoll_registration_t **registration);
MESHCOLL_API int meshcoll_deregister(meshcoll_registration_t *registration);
/** @} */

/**
 * OK as long as nothing went wrong in what was enqueued on the mesh; else the error that ended the
 * mesh, as for a call that fails: ERR_TIMEOUT where a call waited for a rank longer than the
 * mesh's limit (meshcoll_set_timeout), ERR_ABORTED, ERR_PEER, ERR_DEVICE. Calls give up then, and
 * the contents of their buffers are undefined. Does not wait; to be called when a stream is
 * complete, or from time to time.
 */
MESHCOLL_API int meshcoll_async_error(struct meshcoll *mesh);

#ifdef __cplusplus
}
#endif

#endif
