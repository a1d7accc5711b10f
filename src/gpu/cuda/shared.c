#include "gpu/cuda/shared.h"

#include "base/system/descriptor.h"

#include <sys/mman.h>

/* Has the GPU see what is mapped; closes it where it cannot. */
static int pin(mc_cuda_shared_t s, mc_cuda_shared_t *shared)
{
    const mc_cuda_t *const cuda = mc_cuda();
    int status = mc_cuda_status(
        cuda->host_register(s.at, s.bytes, MC_CU_REGISTER_PORTABLE | MC_CU_REGISTER_MAPPED),
        "pin memory of the host");
    if (status) {
        munmap(s.at, s.bytes);
        mc_descriptor_close(&s.fd);
        return status;
    }
    status = mc_cuda_status(cuda->host_address(&s.device, s.at, 0), "map memory of the host");
    if (status)
        mc_cuda_shared_close(&s, false);
    else
        *shared = s;
    return status;
}

int mc_cuda_shared_make(size_t bytes, mc_sealed_t *file, mc_cuda_shared_t *shared)
{
    void *at;
    const int status = mc_sealed_make("meshcoll GPU", bytes, file, &at);
    return status ? status
                  : pin((mc_cuda_shared_t){.at = at, .bytes = bytes, .fd = file->fd}, shared);
}

int mc_cuda_shared_map(size_t bytes, const mc_sealed_t *file, mc_cuda_shared_t *shared)
{
    void *at;
    const int status = mc_sealed_map(file, bytes, &at);
    return status ? status : pin((mc_cuda_shared_t){.at = at, .bytes = bytes, .fd = -1}, shared);
}

void mc_cuda_shared_close(mc_cuda_shared_t *s, bool leaves)
{
    if (!s->at)
        return;
    if (!leaves) {
        mc_cuda()->host_unregister(s->at);
        munmap(s->at, s->bytes);
    }
    mc_descriptor_close(&s->fd);
    *s = (mc_cuda_shared_t){.at = NULL};
}
