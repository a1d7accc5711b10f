/*
 * The allocator of a test of its own: it counts, and fails when it is told to. Include it in one file of a
 * program; where there is none (another C library, a sanitizer's allocator) MC_HAS_ALLOCATIONS is not defined.
 */
#ifndef MC_TESTS_SUPPORT_ALLOCATIONS_H
#define MC_TESTS_SUPPORT_ALLOCATIONS_H

#include <stdbool.h>
#include <stdlib.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MC_HAS_ALLOCATIONS

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *at);

static volatile bool counting;
static volatile unsigned n_calls; /* while counting, of free too */
/* of a thread: */
static _Thread_local volatile unsigned n_left; /* allocations until one fails; 0: none does */
static _Thread_local volatile long n_live;     /* allocated and not freed */

static bool succeeds(void)
{
    n_calls += counting;
    return n_left == 0 || --n_left > 0;
}

static void *noted(void *at)
{
    n_live += at != NULL;
    return at;
}

void *malloc(size_t size)
{
    return succeeds() ? noted(__libc_malloc(size)) : NULL;
}

void *calloc(size_t n, size_t size)
{
    return succeeds() ? noted(__libc_calloc(n, size)) : NULL;
}

void *realloc(void *old, size_t size)
{
    if (!old)
        return malloc(size);
    return succeeds() ? __libc_realloc(old, size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return succeeds() ? noted(__libc_memalign(alignment, size)) : NULL;
}

int posix_memalign(void **at, size_t alignment, size_t size)
{
    void *const found = aligned_alloc(alignment, size);
    if (!found)
        return 12;
    *at = found;
    return 0;
}

void free(void *at)
{
    n_calls += counting;
    n_live -= at != NULL;
    __libc_free(at);
}

#endif
#endif
