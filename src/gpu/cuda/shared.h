/* Memory of the host that processes of a machine share, and their GPUs see. */
#ifndef MC_CUDA_SHARED_H
#define MC_CUDA_SHARED_H

#include "base/system/sealed.h"
#include "gpu/cuda/driver.h"

typedef struct {
    char *at;               /* NULL: none */
    mc_cu_address_t device; /* as the GPU sees it */
    size_t bytes;
    int fd; /* of the process that made it; -1: mapped */
} mc_cuda_shared_t;

/* Zeros; `file` is what the others map. A context is current. */
int mc_cuda_shared_make(size_t bytes, mc_sealed_t *file, mc_cuda_shared_t *shared);
int mc_cuda_shared_map(size_t bytes, const mc_sealed_t *file, mc_cuda_shared_t *shared);
/* `leaves`: the memory stays as it is. */
void mc_cuda_shared_close(mc_cuda_shared_t *shared, bool leaves);

#endif
