/* Positions of blocks of unequal sizes, for the v-variants: tables per buffer. */
#ifndef MC_RUNTIME_BLOCKS_H
#define MC_RUNTIME_BLOCKS_H

#include "plan/plan.h"

/* The tables are NULL where blocks are equal. The memory is reused by the next fill. */
typedef struct {
    size_t *memory;
    /* By chunk (of SCRATCH: from scratch_first on), and one more: elements of the chunks before
     * it. */
    size_t *before;
    /* By chunk of one segment of each side: first element of its block in the user's buffer, and
     * the block's elements. */
    size_t *start;
    size_t *count;
} mc_blocks_t;

/*
 * `counts` and `displs` are by rank, in elements; displs NULL: back to back. `block_of` as in a
 * binding. `blocks` is zero before the first fill, and serves one layout; counts NULL on a mesh
 * that is not ragged empties it.
 */
int mc_blocks_fill(const mc_layout_t *layout, const int32_t *block_of, const size_t *counts,
                   size_t count, const size_t *displs, mc_blocks_t *blocks);
/* Counts of the blocks that an alltoallv holds in SCRATCH: by chunk of one segment and part,
 * from `first` on. `before`, by the same chunks: number of non-empty chunks before it; NULL:
 * none is empty. */
typedef struct {
    const size_t *count, *before;
    uint32_t first, n;
} mc_passing_t;

/* Fills only `before`, over the chunks of SCRATCH in use: from `passing`; without it, where some
 * pairs are empty, with `count` elements for each of the others; else empties `blocks`. */
int mc_blocks_fill_scratch(const mc_plan_t *plan, const mc_passing_t *passing, size_t count,
                           mc_blocks_t *blocks);
void mc_blocks_free(mc_blocks_t *blocks);

/* Chunks after which the same ranks recur: one segment of each side. */
static inline uint32_t mc_blocks_period(const mc_layout_t *layout)
{
    return layout->sides * layout->per_segment;
}

/* Of n even parts of `count` elements: elements before part k, and elements of part k. */
static inline size_t mc_even_start(size_t count, uint32_t n, uint32_t k)
{
    const size_t longer = count % n;
    return count / n * k + (k < longer ? k : longer);
}
static inline size_t mc_even_part(size_t count, uint32_t n, uint32_t k)
{
    return count / n + (k < count % n);
}

#endif
