/*
 * A binding maps a plan's chunks to bytes: the elements of each chunk, and its place in each
 * buffer.
 *
 * Whole-vector collectives (bcast, reduce, allreduce): `count` elements are cut evenly over the
 * chunks in chunk order, the first `count % n_chunks` chunks one longer. No interface fixes the
 * order, so that ranges of chunks are ranges of bytes.
 *
 * Block collectives: the block of rank r is `count` elements at r * count, and segment s is the
 * s-th piece of each block, cut evenly. In the v-variants each block has its own count and
 * displacement. A buffer that holds one block has it at offset 0.
 *
 * SCRATCH has the chunks in use back to back, in chunk order. Chunks may be empty. Out of place, a
 * chunk of SCRATCH whose final value is copied to OUT, where nothing else writes it, lies in OUT
 * from the start: it is received there, and the copy moves nothing.
 */
#ifndef MC_RUNTIME_BINDING_H
#define MC_RUNTIME_BINDING_H

#include "plan/plan.h"
#include "runtime/element/datatype.h"
#include "transport/transport.h"

/* blocks.c: positions of blocks of unequal sizes, for the v-variants: tables per buffer. */

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
} mc_forwarded_t;

/* Fills only `before`, over the chunks of SCRATCH in use: from `forwarded`; without it, where some
 * pairs are empty, with `count` elements for each of the others; else empties `blocks`. */
int mc_blocks_fill_scratch(const mc_plan_t *plan, const mc_forwarded_t *forwarded, size_t count,
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

/* Arguments of an operation. */
typedef struct {
    const void *in;
    void *out;
    size_t count;
    meshcoll_datatype_t datatype;
    meshcoll_op_t op;
    /* v-variants, by rank in elements: blocks of IN, and of OUT and SCRATCH. For a buffer of one
     * block its count is this rank's. displs NULL: back to back. Counts NULL: all are `count`.
     * Read when the binding is measured, not later. */
    const size_t *in_counts, *in_displs, *out_counts, *out_displs;
    const mc_forwarded_t *forwarded; /* NULL: blocks of SCRATCH are as OUT's */
} mc_operands_t;

/* A step's bytes: spans [at, at + n) of `from` (what it reads) and of `to` (what it writes). If
 * it does both, the spans match in length one by one. */
typedef struct {
    uint32_t at, n;
    size_t bytes;
} mc_bound_t;

/* The buffers of a span: that of `from` and of `to`; MC_BUFFERS: it has none. */
typedef struct {
    uint8_t from, to;
} mc_homes_t;

/* Memory that grows and is reused: scratch, followed by staging. */
typedef struct mc_workspace {
    char *base;
    size_t bytes;
    struct mc_workspace *next; /* of the list it is in */
} mc_workspace_t;

int mc_workspace_reserve(mc_workspace_t *workspace, size_t bytes);
void mc_workspace_free(mc_workspace_t *workspace);

typedef struct {
    const mc_plan_t *plan;
    /* By rank: whose block of the user's buffers it has; NULL: its own. */
    const int32_t *block_of;
    /* Unequal blocks by buffer. Empty: all are equal; of SCRATCH: as OUT's. */
    mc_blocks_t blocks[MC_BUFFERS];
    mc_bitmap_t lent; /* chunks of SCRATCH that lie in OUT out of place; empty: none */
    bool lends;       /* whether they do for the current operands */
    bool all_lent;    /* all chunks of SCRATCH in use are lent */
    mc_operands_t operands;
    mc_reducer_t reducer;
    size_t element; /* bytes */
    size_t results; /* elements of OUT that an average divides */
    /* Of a scaled sum: the caller's input; operands.in is where the plan finds the products. */
    const void *unscaled;
    size_t scaled_at, scaled_bytes; /* in SCRATCH's memory, behind SCRATCH; 0 bytes: in OUT */
    mc_bound_t *step;
    mc_span_t *from, *to;
    mc_homes_t *home; /* by span */
    uint32_t n_spans, capacity;
    size_t scratch_bytes;
    char *scratch;
} mc_binding_t;

int mc_binding_init(mc_binding_t *b, const mc_plan_t *plan);
void mc_binding_free(mc_binding_t *b);

/* Where a chunk of a measured binding lies: its buffer, which lending may change, its first byte there and
 * its bytes. Of an empty chunk only the bytes count. Needs no addresses, and not where a sum is scaled. */
typedef struct {
    uint8_t home; /* mc_buffer_t */
    size_t at, bytes;
} mc_chunk_t;
mc_chunk_t mc_binding_chunk(const mc_binding_t *b, mc_buffer_t buffer, uint32_t chunk);

/* Multiplies the input by the scalar of a scaled sum. */
void mc_binding_scale(const mc_binding_t *b);

/* First measure, which computes sizes; then place, which sets the addresses. `scratch` is
 * aligned and has b->scratch_bytes bytes. */
int mc_binding_measure(mc_binding_t *b, const mc_operands_t *operands);
int mc_binding_place(mc_binding_t *b, char *scratch);

/* Moves the spans to other buffers of the same operands, which overlap as the last ones do. Not where
 * a sum is scaled. */
void mc_binding_move(mc_binding_t *b, const void *in, void *out, char *scratch);

/* Prepares this rank's input for a run: scales that of a scaled sum. */
static inline void mc_binding_begin(const mc_binding_t *b)
{
    if (b->reducer.scale)
        mc_binding_scale(b);
}
/* Finishes this rank's results after a run: divides the sums of an average; of a single rank, where there was nothing
 * to combine, those of logical operations become 0 or 1. */
void mc_binding_finish(const mc_binding_t *b);

#endif
