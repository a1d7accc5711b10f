/* Memory of one owner, which is freed together. */
#ifndef MC_BASE_ARENA_H
#define MC_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* Begins as zeros. */
typedef struct {
    void *last;
    bool failed;
} mc_arena_t;

/* `n` elements, all zero. NULL where there is no memory: the arena has `failed` then, so that who takes several arrays
 * asks once. */
void *mc_arena_take(mc_arena_t *arena, size_t n, size_t element);
/* What was taken, if there is any; the arena is as at first. */
void mc_arena_free(mc_arena_t *arena);

#endif
