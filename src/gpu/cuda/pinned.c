#include "gpu/cuda/pinned.h"

#include <string.h>

int mc_cuda_pinned(size_t bytes, void **at, mc_cu_address_t *address)
{
    const mc_cuda_t *const cuda = mc_cuda();
    void *made = NULL;
    int status =
        mc_cuda_status(cuda->host_alloc(&made, bytes, MC_CU_HOST_PORTABLE | MC_CU_HOST_MAPPED),
                       "allocate pinned memory");
    if (status)
        return status;
    status = mc_cuda_status(cuda->host_address(address, made, 0), "map pinned memory");
    if (status) {
        cuda->host_free(made);
        return status;
    }
    memset(made, 0, bytes);
    *at = made;
    return MESHCOLL_OK;
}
