/* What kind of memory the buffers of a call are. */
#ifndef MC_CALL_KINDS_H
#define MC_CALL_KINDS_H

#include "runtime/handle/handle.h"

/* Device memory, and a buffer of it that this rank uses; of host memory only whether. */
typedef struct mc_call_memory {
    bool on_device;
    mc_pointer_t buffer;
} mc_call_memory_t;

/* Asks about the buffers that this rank uses; `args` were checked. Managed memory counts as either,
 * and as the host's if both are managed. ERR_INVALID_ARG where one buffer is device memory and the
 * other the host's; ERR_UNSUPPORTED where the library is built without GPUs. Costs one comparison where there is no
 * driver. */
int mc_call_memory_ask(const meshcoll_t *h, const meshcoll_args_t *args, mc_call_memory_t *memory);
static inline int mc_call_memory(const meshcoll_t *h, const meshcoll_args_t *args,
                                 mc_call_memory_t *memory)
{
    memory->on_device = false;
    return h->job->device->pointer ? mc_call_memory_ask(h, args, memory) : MESHCOLL_OK;
}
/* Refuses device memory for `what`. */
int mc_call_memory_refuse(const meshcoll_t *h, const meshcoll_args_t *args, const char *what);

/* "device memory" */
const char *mc_memory_kind_name(mc_memory_kind_t kind);

/* For a call in a stream: both must be memory that the GPU uses, managed memory too. */
int mc_call_memory_need(const meshcoll_t *h, const meshcoll_args_t *args, mc_call_memory_t *memory);

#endif
