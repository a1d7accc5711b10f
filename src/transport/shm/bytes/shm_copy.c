#include "transport/shm/bytes/shm_copy.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

_Atomic bool mc_shm_string_is_fast;

void mc_shm_copy_init(void)
{
#if defined(__x86_64__)
    enum { ERMS = 1 << 9 }; /* enhanced rep movsb */
    unsigned a, b, c, d;
    const bool fast = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & ERMS);
    atomic_store_explicit(&mc_shm_string_is_fast, fast, memory_order_relaxed);
#endif
}
