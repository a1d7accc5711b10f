/*
 * What a program does with an operation's buffers before the next one: it reads what came and writes what goes out.
 * Else both stay in the cache of whoever moved them the last time, and who pushes bytes into a peer's memory looks
 * faster than who fetches them. Not timed, and the same whatever library is.
 */
#ifndef BENCH_USE_H
#define BENCH_USE_H

#include <stddef.h>
#include <string.h>

/* Zeros, as before. Either may be NULL. */
static inline void use_buffers(void *in, size_t in_bytes, const void *out, size_t out_bytes)
{
    enum { LINE = 64 };
    const volatile char *const came = out;
    for (size_t i = 0; came && i < out_bytes; i += LINE)
        (void)came[i];
    if (in)
        memset(in, 0, in_bytes);
}

#endif
