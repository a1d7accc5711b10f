/* malloc and its relatives, with a tally before glibc's own. One thread. */
#include "heap.h"

#include <errno.h>
#include <malloc.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *at);

static bool counting;
static ptrdiff_t standing, peak;

static void tally(ptrdiff_t change)
{
    standing += change;
    if (standing > peak)
        peak = standing;
}

static ptrdiff_t size_of(void *at)
{
    return at ? (ptrdiff_t)malloc_usable_size(at) : 0;
}

void *malloc(size_t size)
{
    void *const at = __libc_malloc(size);
    if (counting)
        tally(size_of(at));
    return at;
}

void *calloc(size_t n, size_t size)
{
    void *const at = __libc_calloc(n, size);
    if (counting)
        tally(size_of(at));
    return at;
}

/* Where realloc moves a block, the old and the new one exist at the same time; glibc grows in
 * place if it can. */
void *realloc(void *old, size_t size)
{
    const ptrdiff_t before = counting ? size_of(old) : 0;
    void *const at = __libc_realloc(old, size);
    if (counting && at) {
        tally(at == old ? 0 : size_of(at));
        tally(at == old ? size_of(at) - before : -before);
    }
    return at;
}

void free(void *at)
{
    if (counting)
        tally(-size_of(at));
    __libc_free(at);
}

bool heap_counts(void)
{
    return true;
}

void heap_begin(void)
{
    standing = peak = 0;
    counting = true;
}

size_t heap_end(void)
{
    counting = false;
    return (size_t)peak;
}

#else

bool heap_counts(void)
{
    return false;
}

void heap_begin(void)
{
}

size_t heap_end(void)
{
    return 0;
}

#endif
