/* Helpers for every folder: error texts, bounded text, bitmaps, the clock, sizes as text. */
#ifndef MC_BASE_BASE_H
#define MC_BASE_BASE_H

#include "base/number.h"

#include <meshcoll/meshcoll.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keeps a function's frame apart from its caller's, as a call takes at most 32 KiB of the stack. */
#if defined(__GNUC__)
#define MC_APART __attribute__((noinline))
#else
#define MC_APART
#endif

#define MC_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Stores the text for meshcoll_last_error() of this thread and returns `status`: `return
 * mc_fail(…);`. */
int mc_fail(int status, const char *format, ...) MC_PRINTF(2, 3);

/* mc_fail() with ERR_NO_MEMORY: `what` could not be allocated. */
int mc_fail_memory(const char *what);
/* Returns an array of `n` elements with room for one more: the same, or in its place one of twice the capacity; NULL:
 * there is no memory for it, and the old one stays. */
void *mc_grown(void *array, uint32_t n, uint32_t *capacity, size_t element);

/* Compares n numbers as qsort asks for it: the first that differs decides. */
static inline int mc_compare_keys(const int64_t *x, const int64_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Appends a copy of *value, of `element` bytes, to the array that *array points to. ERR_NO_MEMORY: `what` has no room. */
int mc_array_add(void *array, uint32_t *n, uint32_t *capacity, const void *value, size_t element,
                 const char *what);

/* Is `text`, which `what` names, at most `most` characters long? Otherwise fails with `status`. */
int mc_check_length(int status, const char *what, const char *text, size_t most);

/* Text appended to a buffer of the caller's. As with snprintf, `length` counts what was wanted and
 * may exceed `capacity`: the text is then cut, between characters of UTF-8, and still ends with a
 * NUL. */
typedef struct {
    char *at;
    size_t capacity, length;
} mc_text_t;

mc_text_t mc_text(char *buffer, size_t capacity);
void mc_text_add(mc_text_t *text, const char *format, ...) MC_PRINTF(2, 3);
/* What another process or the user wrote goes to a terminal: control characters become spaces. */
void mc_text_clean(char *text);

/* A set of integers below `bits`. */
typedef struct {
    uint64_t *word;
    uint32_t bits;
} mc_bitmap_t;

int mc_bitmap_init(mc_bitmap_t *map, uint32_t bits);
void mc_bitmap_free(mc_bitmap_t *map);
void mc_bitmap_set(mc_bitmap_t *map, uint32_t first, uint32_t n);
/* Returns how many of [first, first + n) are set. */
uint32_t mc_bitmap_count(const mc_bitmap_t *map, uint32_t first, uint32_t n);
bool mc_bitmap_has(const mc_bitmap_t *map, uint32_t at);

/* Returns seconds of a monotonic clock. */
double mc_now(void);
/* ms of the same clock, coarse and cheap. */
int64_t mc_now_ms(void);

/* Units of bytes in texts: KB is 1000, KiB 1024. The first five are the decimal ones, largest first. */
typedef struct {
    const char *name;
    double value;
} mc_unit_t;
enum { MC_DECIMAL_UNITS = 5, MC_BYTE_UNITS = 10 };
extern const mc_unit_t mc_byte_units[MC_BYTE_UNITS];
/* Reads "64M" as bytes: a decimal number with K, M, G or T (powers of 1024), one of the units above, or none.
 * ERR_PARSE otherwise, and where they are no whole number. */
int mc_parse_bytes(const char *text, uint64_t *bytes);
/* A number for a text: its `text` may be used up to the end of the expression. */
typedef struct {
    char text[32];
} mc_printed_t;
/* "64 MiB", "1.5 KiB", "12 B" or, of a multiple of 1000, "8 MB" */
mc_printed_t mc_print_bytes(double bytes);

#endif
