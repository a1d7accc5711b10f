/* Copying to and from pages that two cores take turns with. */
#ifndef MC_TRANSPORT_SHM_COPY_H
#define MC_TRANSPORT_SHM_COPY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* From here on by the processor's string instruction where it is fast, as it does not fetch lines from the other core
 * before it writes them over. Each way 2 KiB at once took 0.96 us on a 2-core Xeon (model 167), by memcpy's loop 1.24 us;
 * 512 bytes took 0.70 and 0.65 us. */
enum { MC_SHM_STRING = 1024 };

/* Whether it is fast, and whether another way is faster where it writes less than a vector register (32 bytes) behind where it
 * reads, by the offsets in their pages: from a page to malloc's 16 bytes behind the begin of one, 4 KiB took 1.4 to 2.0 us on
 * an EPYC (family 25, model 1), else 0.1. Asked and timed once, by who makes a transport: in a virtual machine it takes
 * microseconds. */
extern _Atomic bool mc_shm_string_is_fast, mc_shm_string_stumbles;
void mc_shm_copy_init(void);

static inline void mc_shm_copy_lines(void *to, const void *from, size_t n)
{
    enum { LINE = 64 };
    char *t = to;
    const char *f = from;
    for (; n >= LINE; n -= LINE, t += LINE, f += LINE) {
        memcpy(t, f, LINE);
#if defined(__GNUC__)
        __asm__ volatile("" : : : "memory"); /* or the compiler makes one memcpy of all of it */
#endif
    }
    memcpy(t, f, n);
}

#if defined(__x86_64__) && defined(__GNUC__)

static inline void mc_shm_copy_string(void *to, const void *from, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static inline bool mc_shm_is_close_behind(const void *to, const void *from)
{
    enum { PAGE = 4096, VECTOR = 32 };
    const uintptr_t behind = ((uintptr_t)to - (uintptr_t)from) % PAGE;
    return behind > 0 && behind < VECTOR;
}

#endif

static inline void mc_shm_copy(void *to, const void *from, size_t n)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (n >= MC_SHM_STRING && atomic_load_explicit(&mc_shm_string_is_fast, memory_order_relaxed)) {
        if (mc_shm_is_close_behind(to, from) &&
            atomic_load_explicit(&mc_shm_string_stumbles, memory_order_relaxed))
            mc_shm_copy_lines(to, from, n);
        else
            mc_shm_copy_string(to, from, n);
        return;
    }
#endif
    memcpy(to, from, n);
}

#endif
