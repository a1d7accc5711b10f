/* Calls on device memory: in a stream of the caller's, or blocking. The caller holds the lock. */
#ifndef MC_CALL_ENQUEUE_H
#define MC_CALL_ENQUEUE_H

#include "gpu/launch/programs.h"
#include "runtime/call/start.h"
#include "runtime/check/kinds.h"

/* Chooses the strategy of a checked call that has its numbers, and finds its program, for which the
 * ranks may meet. `waits`: it may wait for peers besides, for what an alltoallv must know of them.
 * Where it fails on this rank alone, the mesh fails. */
int mc_device_call_prepare(meshcoll_t *h, const mc_asked_t *asked, const mc_call_memory_t *memory,
                           bool waits, mc_ranked_t *choice, mc_gpu_program_t **program);
/* Runs such a call to its end. */
int mc_device_call_run(meshcoll_t *h, const mc_asked_t *asked, const mc_call_memory_t *memory);
/* A call of the public meshcoll_enqueue. */
int mc_enqueue(meshcoll_t *h, const meshcoll_args_t *given, void *stream);

/* A persistent request for such a call, without a plan for the host. */
int mc_device_request(meshcoll_t *h, const mc_asked_t *asked, const mc_call_memory_t *memory,
                      meshcoll_request_t **request);
int mc_enqueue_request(meshcoll_request_t *request, void *stream);

#endif
