/*
 * A binding gives a plan's chunks bytes: which elements a chunk has, and where each buffer keeps it.
 *
 * Whole-vector collectives (bcast, reduce, allreduce): `count` elements are cut evenly over the
 * chunks in chunk order, the first `count % n_chunks` chunks one longer; no interface fixes the
 * order, so that ranges of chunks are ranges of bytes.
 * Block collectives: the block of rank r is `count` elements at r * count, and segment s is the
 * s-th piece of each block, cut evenly. The v-variants give each block a count and a displacement of
 * its own. A buffer that holds one block has it at offset 0.
 * SCRATCH has the chunks in use back to back, in chunk order. Chunks may be empty.
 * Out of place, a chunk of SCRATCH that is done when it is copied to OUT, where nothing else writes
 * it, lies in OUT from the start: it is received where it stays, and the copy is none.
 */
#ifndef MC_RUNTIME_BINDING_H
#define MC_RUNTIME_BINDING_H

#include "plan/plan.h"
#include "runtime/bind/blocks.h"
#include "runtime/element/datatype.h"
#include "transport/transport.h"

/* What an operation is bound to. */
typedef struct {
    const void *in;
    void *out;
    size_t count;
    meshcoll_datatype_t datatype;
    meshcoll_op_t op;
    /* v-variants, by rank in elements: blocks of IN, and of OUT and SCRATCH. Where a buffer holds one
     * block, its count is this rank's; displs NULL: back to back. Counts NULL: all are `count`. They
     * are read when the binding is measured, not later. */
    const size_t *in_counts, *in_displs, *out_counts, *out_displs;
    const mc_passing_t *passing; /* NULL: blocks of SCRATCH are as OUT's */
} mc_operands_t;

/* A step's bytes: spans [at, at + n) of `from` (what it reads) and of `to` (what it writes), piece
 * by piece of the same length where it does both. */
typedef struct {
    uint32_t at, n;
    size_t bytes;
} mc_bound_t;

/* Memory that grows and is reused: scratch, then staging. */
typedef struct mc_workspace {
    char *base;
    size_t bytes;
    struct mc_workspace *next; /* in whoever's list */
} mc_workspace_t;

int mc_workspace_reserve(mc_workspace_t *workspace, size_t bytes);
void mc_workspace_free(mc_workspace_t *workspace);

typedef struct {
    const mc_plan_t *plan;
    /* by rank: whose block of the user's buffers it is; NULL: its own */
    const int32_t *block_of;
    /* of unequal sizes, by buffer; empty: all are alike, and of SCRATCH: as OUT's */
    mc_blocks_t blocks[MC_BUFFERS];
    mc_bitmap_t lent; /* chunks of SCRATCH that OUT has room for out of place; empty: none */
    bool lends;       /* in this placement */
    bool all_lent;    /* all chunks of SCRATCH that are in use */
    mc_operands_t operands;
    mc_reducer_t reducer;
    size_t element; /* bytes */
    size_t results; /* elements of OUT that an average divides */
    mc_bound_t *step;
    mc_span_t *from, *to;
    uint32_t n_spans, capacity;
    size_t scratch_bytes;
    char *scratch;
} mc_binding_t;

int mc_binding_init(mc_binding_t *b, const mc_plan_t *plan);
void mc_binding_free(mc_binding_t *b);

/* Sizes first: what memory it will take. Then the addresses, scratch at `scratch` (aligned). */
int mc_binding_measure(mc_binding_t *b, const mc_operands_t *operands);
int mc_binding_place(mc_binding_t *b, char *scratch);

/* After a run, once: what the operation does to this rank's results, as an average divides them. */
void mc_binding_finish(const mc_binding_t *b);

#endif
