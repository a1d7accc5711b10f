/** @file
 * Collectives on GPU memory; meshcoll.h includes this file. docs/gpu.md says what works, and on what it was run.
 */
#ifndef MESHCOLL_GPU_H
#define MESHCOLL_GPU_H

#include <meshcoll/datatypes.h>

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
 * a mesh, which is collective: there the ranks allocate memory on their GPUs and open each other's.
 *
 * `args` are those of meshcoll_begin, and are read before the call returns. All ranks make the same
 * calls in the same order, relative to their other calls too. Ranks may be on several machines;
 * where all are on one, several may share a GPU, and the call waits then where the driver's queue is
 * full. `in` and `out` are device or managed memory, on the same GPU in all calls of a mesh; they
 * belong to the library until the call is done in its stream. Calls of one mesh in several streams
 * run one after the other. While a stream is captured, the call becomes part of the graph; launches
 * of that graph must be ordered with other calls of the mesh by the program. Where ranks of the mesh
 * are on several machines, a call in a capture is refused.
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
 * failed; where other ranks might wait for this one, the mesh fails with it. What goes wrong later
 * meshcoll_async_error tells.
 */
MESHCOLL_API int meshcoll_enqueue(struct meshcoll *mesh, const struct meshcoll_args *args,
                                  void *stream);
MESHCOLL_API int meshcoll_enqueue_request(struct meshcoll_request *request, void *stream);
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
