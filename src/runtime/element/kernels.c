#include "runtime/element/kernels.h"

#include <stdatomic.h>

const mc_kernels_t *const mc_kernels[] = {
    &mc_kernels_baseline,
#ifdef MC_HAS_X86_KERNELS
    &mc_kernels_avx2,
    &mc_kernels_avx512,
#endif
};
const int mc_n_kernels = MC_COUNT(mc_kernels);

/* Detects it once, as CPUID traps in virtual machines. Threads that detect concurrently find the
 * same. */
const mc_kernels_t *mc_kernels_best(void)
{
    static _Atomic(const mc_kernels_t *) found;
    const mc_kernels_t *const known = atomic_load_explicit(&found, memory_order_relaxed);
    if (known)
        return known;
    int best = mc_n_kernels - 1;
    while (best > 0 && !mc_kernels[best]->runs_here())
        best--;
    atomic_store_explicit(&found, mc_kernels[best], memory_order_relaxed);
    return mc_kernels[best];
}
