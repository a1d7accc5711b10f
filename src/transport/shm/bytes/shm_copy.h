/* Copies to and from pages that two cores alternately read and write. */
#ifndef MC_TRANSPORT_SHM_COPY_H
#define MC_TRANSPORT_SHM_COPY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* From this size on copies use the processor's string instruction where it is fast: it does not
 * fetch the lines it overwrites from the other core. */
enum { MC_SHM_STRING = 1024 };

/* Set once, when a transport is created, as CPUID traps in virtual machines. */
extern _Atomic bool mc_shm_string_is_fast;
void mc_shm_copy_init(void);

/* On some x86 processors the string instruction stalls where the target is less than a vector register
 * behind the source, as offsets in their pages. The kernel copies by it, also between processes. */
static inline bool mc_shm_stalls(const void *to, const void *from)
{
#if defined(__x86_64__)
    enum { PAGE = 4096, VECTOR = 32 };
    const uintptr_t behind = ((uintptr_t)to - (uintptr_t)from) % PAGE;
    return behind > 0 && behind < VECTOR;
#else
    (void)to, (void)from;
    return false;
#endif
}

/* memcpy may use the string instruction, too. */
static inline void mc_shm_copy_lines(void *to, const void *from, size_t n)
{
    enum { LINE = 64 };
    char *t = to;
    const char *f = from;
    for (; n >= LINE; n -= LINE, t += LINE, f += LINE) {
        memcpy(t, f, LINE);
        __asm__ volatile("" : : : "memory"); /* or the compiler merges the loop into one memcpy */
    }
    memcpy(t, f, n);
}

static inline void mc_shm_copy(void *to, const void *from, size_t n)
{
#if defined(__x86_64__)
    if (n >= MC_SHM_STRING && atomic_load_explicit(&mc_shm_string_is_fast, memory_order_relaxed)) {
        if (mc_shm_stalls(to, from))
            mc_shm_copy_lines(to, from, n);
        else
            __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
        return;
    }
#endif
    memcpy(to, from, n);
}

#endif
