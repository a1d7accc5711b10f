/* A libcuda that is too old: it has little more than pointers. */
#include "gpu/cuda/types.h"

__attribute__((visibility("default"))) mc_cu_result_t cuPointerGetAttributes(
    unsigned n, mc_cu_pointer_attribute_t *what, void **at, mc_cu_address_t pointer);

mc_cu_result_t cuPointerGetAttributes(unsigned n, mc_cu_pointer_attribute_t *what, void **at,
                                      mc_cu_address_t pointer)
{
    (void)n, (void)what, (void)at, (void)pointer;
    return MC_CU_ERROR_NOT_INITIALIZED;
}
