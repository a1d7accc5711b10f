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

/* Is the string instruction fast? Is it slow where the destination is less than a vector
 * register behind the source, as offsets in their pages? (So it is on some processors, and
 * malloc's blocks begin 16 bytes behind a page's start.) mc_shm_copy_init asks and measures
 * once, when a transport is created, as CPUID traps in virtual machines. */
extern _Atomic bool mc_shm_string_is_fast, mc_shm_string_stalls;
void mc_shm_copy_init(void);

static inline void mc_shm_copy_lines(void *to, const void *from, size_t n)
{
    enum { LINE = 64 };
    char *t = to;
    const char *f = from;
    for (; n >= LINE; n -= LINE, t += LINE, f += LINE) {
        memcpy(t, f, LINE);
#if defined(__GNUC__)
        __asm__ volatile("" : : : "memory"); /* or the compiler merges the loop into one memcpy */
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

#else

static inline bool mc_shm_is_close_behind(const void *to, const void *from)
{
    (void)to, (void)from;
    return false;
}

#endif

/* Would the string instruction stall between these? The kernel copies by it, also between processes. */
static inline bool mc_shm_stalls(const void *to, const void *from)
{
    return mc_shm_is_close_behind(to, from) &&
           atomic_load_explicit(&mc_shm_string_stalls, memory_order_relaxed);
}

static inline void mc_shm_copy(void *to, const void *from, size_t n)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (n >= MC_SHM_STRING && atomic_load_explicit(&mc_shm_string_is_fast, memory_order_relaxed)) {
        if (mc_shm_stalls(to, from))
            mc_shm_copy_lines(to, from, n);
        else
            mc_shm_copy_string(to, from, n);
        return;
    }
#endif
    memcpy(to, from, n);
}

#endif
