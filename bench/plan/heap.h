/* Counts the bytes that malloc returns while counting is on. */
#ifndef BENCH_HEAP_H
#define BENCH_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Does this build count at all? (Not with a sanitizer, nor with another C library than glibc.) */
bool heap_counts(void);
void heap_begin(void);
/* The most bytes that stood at once since heap_begin. */
size_t heap_end(void);

#endif
