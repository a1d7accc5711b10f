/* Making and freeing what a mesh has for calls on device memory. */
#ifndef MC_GPU_OPEN_H
#define MC_GPU_OPEN_H

#include "gpu/mesh/gpu.h"

/* Makes h->gpu, unless it is there; `buffer` is a pointer of the call. Collective; `number` is the
 * call's. Either all ranks succeed, or all fail and *agreed is set: they know it of each other. */
int mc_gpu_open(meshcoll_t *h, const mc_pointer_t *buffer, uint32_t number, bool *agreed);
/* May ranks of this mesh use GPUs? The same on all of them. */
int mc_gpu_check_ranks(const meshcoll_t *h);
/* When the kernels of all ranks are complete: peers' memory is not used any more. */
void mc_gpu_unmap(meshcoll_t *h);
/* Was it done? */
bool mc_gpu_is_unmapped(const mc_gpu_t *gpu);
/* When all ranks have done that, frees what mc_gpu_open has made, and memory of programs; the context is current.
 * `leaves`: what peers or kernels may still use stays until the process ends. */
void mc_gpu_free(const meshcoll_t *h, mc_gpu_t *gpu, bool leaves);
/* Of a job with `gpu`, at last. */
void mc_gpu_alarm_free(const mc_job_t *job);

#endif
