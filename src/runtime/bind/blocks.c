#include "runtime/bind/binding.h"

#include <stdlib.h>

void mc_blocks_free(mc_blocks_t *blocks)
{
    free(blocks->memory);
    *blocks = (mc_blocks_t){0};
}

/* Elements of a rank's block. */
static size_t count_of(const size_t *counts, size_t count, int32_t rank)
{
    return counts ? counts[rank] : count;
}

/* By rank, with blocks back to back. */
static void fill_starts(const mc_layout_t *l, const size_t *counts, size_t count, size_t *start)
{
    size_t end = 0;
    for (int32_t r = 0; r < l->mesh.size; r++) {
        start[r] = end;
        end += count_of(counts, count, r);
    }
}

/* A place of a ragged mesh without a rank has an empty block. */
static void fill(const mc_layout_t *l, const int32_t *block_of, const size_t *counts, size_t count,
                 const size_t *displs, const mc_blocks_t *b)
{
    const uint32_t n = mc_blocks_period(l);
    for (uint32_t c = 0; c < n; c++) {
        const int32_t home = mc_layout_rank(l, c);
        const int32_t rank = block_of && home >= 0 ? block_of[home] : home;
        b->start[c] = home < 0 ? 0 : displs[rank];
        b->count[c] = home < 0 ? 0 : count_of(counts, count, rank);
    }
    b->before[0] = 0;
    for (uint32_t c = 0; c < mc_layout_chunks(l); c++)
        b->before[c + 1] =
            b->before[c] + mc_even_part(b->count[c % n], l->segments, c / l->per_segment);
}

int mc_blocks_fill(const mc_layout_t *layout, const int32_t *block_of, const size_t *counts,
                   size_t count, const size_t *displs, mc_blocks_t *blocks)
{
    const size_t ends = (size_t)mc_layout_chunks(layout) + 1, n = mc_blocks_period(layout);
    const size_t ranks = (size_t)layout->mesh.size;
    size_t *memory = blocks->memory;
    *blocks = (mc_blocks_t){.memory = memory};
    if (!counts && !layout->mesh.ragged)
        return MESHCOLL_OK;
    if (!memory)
        memory = malloc((ends + 2 * n + ranks) * sizeof *memory);
    if (!memory)
        return mc_fail_memory("blocks of unequal sizes");
    *blocks = (mc_blocks_t){memory, memory, memory + ends, memory + ends + n};
    size_t *const packed = memory + ends + 2 * n;
    if (!displs)
        fill_starts(layout, counts, count, packed);
    fill(layout, block_of, counts, count, displs ? displs : packed, blocks);
    return MESHCOLL_OK;
}

/* The chunk's number in the same plan with one segment. */
static uint32_t in_one_segment(const mc_plan_t *plan, uint32_t chunk)
{
    const uint32_t per_segment = plan->layout.per_segment * mc_plan_depth(plan);
    return chunk / mc_plan_part(plan) * per_segment + chunk % per_segment;
}

/* Elements, over all segments, of the block that `chunk` holds a piece of. */
static size_t count_passing(const mc_plan_t *plan, const mc_forwarded_t *forwarded, size_t count,
                            uint32_t chunk)
{
    if (!forwarded)
        return mc_plan_absent(plan, MC_SCRATCH, chunk) ? 0 : count;
    const uint32_t at = in_one_segment(plan, chunk) - forwarded->first;
    if (at >= forwarded->n)
        return 0;
    if (!forwarded->before)
        return forwarded->count[at];
    const bool empty = forwarded->before[at] == forwarded->before[at + 1];
    return empty ? 0 : forwarded->count[forwarded->before[at]];
}

int mc_blocks_fill_scratch(const mc_plan_t *plan, const mc_forwarded_t *forwarded, size_t count,
                           mc_blocks_t *blocks)
{
    size_t *memory = blocks->memory;
    *blocks = (mc_blocks_t){.memory = memory};
    if (!forwarded && !plan->empty)
        return MESHCOLL_OK;
    if (!memory)
        memory = malloc(((size_t)plan->n_scratch + 1) * sizeof *memory);
    if (!memory)
        return mc_fail_memory("forwarded blocks");
    *blocks = (mc_blocks_t){.memory = memory, .before = memory};
    memory[0] = 0;
    for (uint32_t i = 0; i < plan->n_scratch; i++) {
        const uint32_t chunk = plan->scratch_first + i;
        const size_t all = count_passing(plan, forwarded, count, chunk);
        memory[i + 1] = memory[i] + mc_even_part(all, plan->layout.segments,
                                                 mc_plan_segment(plan, MC_SCRATCH, chunk));
    }
    return MESHCOLL_OK;
}
