/* What kind of memory a pointer points to. */
#ifndef MC_CUDA_KIND_H
#define MC_CUDA_KIND_H

#include "gpu/cuda/driver.h"

/* REGISTERED: of the host, and pinned by CUDA. MANAGED: moves between host and devices. */
typedef enum {
    MC_MEMORY_HOST,
    MC_MEMORY_REGISTERED,
    MC_MEMORY_MANAGED,
    MC_MEMORY_DEVICE
} mc_memory_kind_t;

typedef struct {
    mc_memory_kind_t kind;
    int device;              /* of DEVICE and MANAGED: its ordinal */
    mc_cu_context_t context; /* it was allocated in; NULL: unknown */
} mc_pointer_t;

/* NULL is HOST, and so is everything where there is no libcuda. */
mc_pointer_t mc_pointer(const void *at);
/* "device memory" */
const char *mc_memory_kind_name(mc_memory_kind_t kind);

/* Is it memory that only a device reaches? Costs one comparison where there is no libcuda, else a
 * call of the driver, which answers at once before it is initialised. */
bool mc_pointer_ask_device(const void *at);
static inline bool mc_pointer_on_device(const void *at)
{
    return mc_cuda_there && mc_pointer_ask_device(at);
}

#endif
