#include "base/arena.h"

#include <stdlib.h>

typedef struct block {
    struct block *before;
    max_align_t data[];
} block_t;

void *mc_arena_take(mc_arena_t *a, size_t n, size_t element)
{
    size_t bytes;
    const bool fits = !__builtin_mul_overflow(n, element, &bytes) &&
                      !__builtin_add_overflow(bytes, sizeof(block_t), &bytes);
    block_t *const b = fits ? calloc(1, bytes) : NULL;
    if (!b) {
        a->failed = true;
        return NULL;
    }
    b->before = a->last;
    a->last = b;
    return b->data;
}

void mc_arena_free(mc_arena_t *a)
{
    for (block_t *b = a->last, *before; b; b = before) {
        before = b->before;
        free(b);
    }
    *a = (mc_arena_t){0};
}
