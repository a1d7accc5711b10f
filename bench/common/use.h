/*
 * Touches an operation's buffers as an application does before the next call: it reads the output
 * and writes the input. Otherwise both stay in the cache of the rank that moved them last, and a
 * push into a peer's memory looks faster than a fetch from it. Outside the measured time, and the
 * same for every library.
 */
#ifndef BENCH_USE_H
#define BENCH_USE_H

#include <stddef.h>
#include <string.h>

/* The input is set to zeros again. Either may be NULL. */
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
