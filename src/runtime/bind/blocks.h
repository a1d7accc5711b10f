/* Where blocks of unequal sizes lie, for the v-variants: tables for one buffer. */
#ifndef MC_RUNTIME_BLOCKS_H
#define MC_RUNTIME_BLOCKS_H

#include "plan/plan.h"

/* Tables are NULL where blocks are alike; the memory stays for the next filling. */
typedef struct {
    size_t *memory;
    /* by chunk, of SCRATCH from scratch_first on, and one more: elements of the chunks before it */
    size_t *before;
    size_t *start; /* by chunk of each side: the element its block starts at in the user's buffer */
    size_t *count; /* by chunk of each side: elements of its block */
} mc_blocks_t;

/*
 * `counts` and `displs` in elements, by rank; displs NULL: back to back. `block_of` as in a binding.
 * `blocks` is zero at first, and then serves one layout; with counts NULL it is emptied.
 */
int mc_blocks_fill(const mc_layout_t *layout, const int32_t *block_of, const size_t *counts,
                   size_t count, const size_t *displs, mc_blocks_t *blocks);
/* Counts of the blocks that stand in SCRATCH, of an alltoallv: by chunk of one segment and part, from
 * `first` on. `before`, by the same chunks: how many come before it, empty ones left out; NULL: none is. */
typedef struct {
    const size_t *count, *before;
    uint32_t first, n;
} mc_passing_t;

/* Fills `before` only, over the chunks of SCRATCH in use: by `passing`, or, where that is NULL and they
 * are pairs of which some are empty, with `count` elements each but those. Else it empties `blocks`. */
int mc_blocks_fill_scratch(const mc_plan_t *plan, const mc_passing_t *passing, size_t count,
                           mc_blocks_t *blocks);
void mc_blocks_free(mc_blocks_t *blocks);

/* After so many chunks the same ranks' come again: after one segment of each side. */
static inline uint32_t mc_blocks_period(const mc_layout_t *layout)
{
    return layout->sides * layout->per_segment;
}

/* Elements in the first k of n even parts, and in the k-th. */
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
