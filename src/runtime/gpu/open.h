/* Making and freeing what a mesh has for calls on device memory. */
#ifndef MC_GPU_OPEN_H
#define MC_GPU_OPEN_H

#include "runtime/gpu/gpu.h"

/* Makes h->gpu, unless it is there; `buffer` is a pointer of the call. Collective; `number` is the
 * call's. Either all ranks succeed, or all fail and *agreed is set: they know it of each other. */
int mc_gpu_open(meshcoll_t *h, const mc_pointer_t *buffer, uint32_t number, bool *agreed);
/* Waits until the kernels are complete that this rank has launched on the mesh and on what was made
 * from it. */
void mc_gpu_await_all(meshcoll_t *h);
/* When all ranks have done so: peers' memory is not used any more. */
void mc_gpu_unmap(meshcoll_t *h);
/* When all ranks have done that: frees all. Where it was not done, and of a mesh that failed, memory
 * that peers may still use stays until the process ends. */
void mc_gpu_close(meshcoll_t *h);

#endif
