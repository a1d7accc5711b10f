/* The end of a mesh's calls on device memory. */
#ifndef MC_LAUNCH_CLOSE_H
#define MC_LAUNCH_CLOSE_H

#include "runtime/handle/handle.h"

/* Waits until the kernels are complete that this rank has launched on the mesh and on what was made
 * from it. */
void mc_gpu_await_all(meshcoll_t *h);
/* When all ranks have unmapped (gpu/mesh/open.h): frees all. Where it was not done, and of a mesh that failed, memory
 * that peers may still use stays until the process ends. Of a root, when its monitor is closed and all that was made from
 * it is freed. */
void mc_gpu_close(meshcoll_t *h);

#endif
