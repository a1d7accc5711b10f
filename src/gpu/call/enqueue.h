/* Calls that kernels run: in a stream of the caller's, or blocking. The caller holds the lock. */
#ifndef MC_GPU_ENQUEUE_H
#define MC_GPU_ENQUEUE_H

#include "runtime/call/start.h"

int mc_gpu_call_run(meshcoll_t *h, const mc_asked_t *asked, const mc_pointer_t *buffer);
/* A persistent request, without a plan for the host. */
int mc_gpu_request(meshcoll_t *h, const mc_asked_t *asked, const mc_pointer_t *buffer,
                   meshcoll_request_t **request);
int mc_gpu_enqueue(meshcoll_t *h, const meshcoll_args_t *given, void *stream);
int mc_gpu_enqueue_request(meshcoll_request_t *request, void *stream);

#endif
