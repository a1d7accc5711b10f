/* Memory of the host that the processor and devices both use. */
#ifndef MC_CUDA_PINNED_H
#define MC_CUDA_PINNED_H

#include "gpu/cuda/driver.h"

/* Zeroed; *address is how devices see it. A context is current. ERR_DEVICE. The caller frees it by
 * host_free. */
int mc_cuda_pinned(size_t bytes, void **at, mc_cu_address_t *address);

#endif
