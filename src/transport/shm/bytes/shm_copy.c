#include "transport/shm/bytes/shm_copy.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

_Atomic bool mc_shm_string_is_fast, mc_shm_string_stalls;

#if defined(__x86_64__) && defined(__GNUC__)

/* Copies a page to where malloc would place it: 16 bytes behind the start of another page. */
static double least_seconds(void (*copy)(void *to, const void *from, size_t n), char *area)
{
    enum { PAGE = 4096, BEHIND = 16, TRIES = 4 };
    double least = INFINITY;
    for (int i = 0; i < TRIES; i++) {
        const double begin = mc_now();
        copy(area + PAGE + BEHIND, area, PAGE);
        least = fmin(least, mc_now() - begin);
    }
    return least;
}

void mc_shm_copy_init(void)
{
    enum { ERMS = 1 << 9 }; /* enhanced rep movsb */
    enum { PAGES = 3 };
    char *const area = aligned_alloc(4096, PAGES * 4096);
    unsigned a, b, c, d;
    const bool fast = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & ERMS);
    if (area)
        memset(area, 0, PAGES * 4096);
    /* without the memory to find out, it is taken for slow */
    const bool stumbles = fast && (!area || least_seconds(mc_shm_copy_lines, area) <
                                                least_seconds(mc_shm_copy_string, area));
    free(area);
    atomic_store_explicit(&mc_shm_string_stalls, stumbles, memory_order_relaxed);
    atomic_store_explicit(&mc_shm_string_is_fast, fast, memory_order_relaxed);
}

#else

void mc_shm_copy_init(void)
{
}

#endif
