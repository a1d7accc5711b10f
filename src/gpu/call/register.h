/* Registering memory of GPUs, and taking that back: collective. The caller holds the mesh's lock. */
#ifndef MC_GPU_REGISTER_H
#define MC_GPU_REGISTER_H

#include "gpu/mesh/window.h"

/* All ranks succeed, or all fail with the sentence of the first that failed. `registration` may be
 * NULL, which is an error that all are told. */
int mc_gpu_register(meshcoll_t *h, void *buffer, size_t bytes,
                    struct meshcoll_registration **registration);
/* Waits until this rank's launches are complete, and then for all ranks. Where it fails, the
 * registration stays. */
int mc_gpu_deregister(struct meshcoll_registration *registration);

#endif
