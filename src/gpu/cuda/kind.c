#include "gpu/cuda/kind.h"

/* The driver fails for memory that it does not know, for a context without unified addresses, and
 * before it is initialised; some versions succeed with zeros. All that is plain host memory. */
mc_pointer_t mc_pointer(const void *at)
{
    mc_pointer_t found = {.kind = MC_MEMORY_HOST};
    unsigned type = 0, managed = 0;
    int device = 0;
    mc_cu_context_t context = NULL;
    mc_cu_pointer_attribute_t ask[] = {MC_CU_POINTER_TYPE, MC_CU_POINTER_MANAGED,
                                       MC_CU_POINTER_DEVICE, MC_CU_POINTER_CONTEXT};
    void *answer[] = {&type, &managed, &device, &context};
    const mc_cuda_t *const cuda = mc_cuda();
    if (!cuda || !at ||
        cuda->pointer_attributes(MC_COUNT(ask), ask, answer, (mc_cu_address_t)(uintptr_t)at) != 0)
        return found;
    if (managed)
        found.kind = MC_MEMORY_MANAGED;
    else if (type == MC_CU_TYPE_DEVICE)
        found.kind = MC_MEMORY_DEVICE;
    else if (type == MC_CU_TYPE_HOST)
        found.kind = MC_MEMORY_REGISTERED;
    found.device = device;
    found.context = context;
    return found;
}

bool mc_pointer_ask_device(const void *at)
{
    return mc_pointer(at).kind == MC_MEMORY_DEVICE;
}

const char *mc_memory_kind_name(mc_memory_kind_t kind)
{
    static const char *const name[] = {[MC_MEMORY_HOST] = "host memory",
                                       [MC_MEMORY_REGISTERED] = "pinned host memory",
                                       [MC_MEMORY_MANAGED] = "managed memory",
                                       [MC_MEMORY_DEVICE] = "device memory"};
    return (unsigned)kind < MC_COUNT(name) ? name[kind] : "?";
}
