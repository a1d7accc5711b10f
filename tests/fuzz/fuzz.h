/* What fuzz targets share. Each defines LLVMFuzzerTestOneInput, which libFuzzer calls with bytes. */
#ifndef MC_TESTS_FUZZ_FUZZ_H
#define MC_TESTS_FUZZ_FUZZ_H

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program, as a sanitizer does. */
#define FUZZ_CHECK(condition, ...)                                            \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);   \
            fprintf(stderr, __VA_ARGS__);                                     \
            fprintf(stderr, "; the last error: %s\n", meshcoll_last_error()); \
            abort();                                                          \
        }                                                                     \
    } while (0)

/* The bytes as a text, in memory that ends behind its NUL. The caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *const text = malloc(size + 1);
    FUZZ_CHECK(text, "no memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* Ends the first line of `text`; returns the rest. */
static inline char *fuzz_cut_line(char *text)
{
    char *const end = text + strcspn(text, "\n");
    if (!*end)
        return end;
    *end = '\0';
    return end + 1;
}

/* Large boxes take time and say nothing new: is none of the numbers of a mesh with boxes of unequal sizes above 256? */
static inline bool fuzz_is_small(const char *mesh)
{
    long most = 0;
    for (const char *at = mesh; *at;) {
        char *end;
        const long n = strtol(at, &end, 10);
        most = n > most ? n : most;
        at = end > at ? end : at + 1;
    }
    return !strchr(mesh, '+') || most <= 256;
}

/* Takes the next byte; 0 behind the last one. */
typedef struct {
    const uint8_t *at, *end;
} fuzz_bytes_t;
static inline uint8_t fuzz_byte(fuzz_bytes_t *bytes)
{
    return bytes->at < bytes->end ? *bytes->at++ : 0;
}
/* Fills `to` with what is left, then zeros. */
static inline void fuzz_fill(fuzz_bytes_t *bytes, void *to, size_t n)
{
    const size_t left = (size_t)(bytes->end - bytes->at), taken = n < left ? n : left;
    memset(to, 0, n);
    if (taken > 0)
        memcpy(to, bytes->at, taken);
    bytes->at += taken;
}

#endif
