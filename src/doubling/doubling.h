/*
 * Algorithms on one line whose partners are a power of two apart, ⌈log₂ p⌉ rounds or little more:
 * recursive doubling and halving, and Bruck's dissemination. Thakur, Rabenseifner, Gropp 2005; Bruck
 * et al. 1997.
 *
 * Doubling and halving exchange between 2^k ranks, the core. On other lengths p = 2^k + surplus the
 * first 2 * surplus ranks form pairs, of which the lower stands for both: its surplus neighbour
 * gives before and gets after. Blocks of the core are runs of ranks and of slices.
 */
#ifndef MC_DOUBLING_DOUBLING_H
#define MC_DOUBLING_DOUBLING_H

#include "mesh/aligned.h"
#include "plan/builder.h"

/* Sums (lower block) + (upper block): in the order of the line, the same bits everywhere.
 * log p (alpha + n beta + n gamma), and where p is no power of two 2 alpha + 2 n beta + n gamma. */
mc_tile_t mc_doubling_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* log p alpha + (p-1)/p n (beta + gamma); else up to twice the bytes besides. */
mc_tile_t mc_halving_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* log p alpha + (p-1)/p n beta; else up to twice the bytes besides. */
mc_tile_t mc_doubling_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* (p-1)/p n beta on any length. Slices that run over the line's end are two messages here. */
mc_tile_t mc_bruck_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/*
 * Sums whose brackets are the aligned tree on any length (mesh/aligned.h), lower ranks first: blocks
 * of 2^k ranks and what is left at the line's end meet in pairs, the smallest first.
 * Allreduce is doubling where p is a power of two; else blocks of unequal size meet in up to log p
 * of its ceil(log p) rounds, and a rank of the smaller one sends to several of the larger.
 * Reduce-scatter: a rank sends each slice that is not its own once, with what it has summed of it:
 * (p-1)/p n (beta + gamma); log p messages where p is a power of two, else p-1.
 */
mc_tile_t mc_aligned_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_aligned_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* Alltoall in ceil(log p) rounds on any length, for small blocks: Bruck et al. 1997, section 3.2.
 * A round's slices are two messages where the last run of them is shorter. */
mc_tile_t mc_bruck_alltoall(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/* size: the largest power of two that is no more than the line's length. */
typedef struct {
    int32_t size, surplus;
} mc_core_t;

static inline mc_core_t mc_core(int32_t len)
{
    int32_t size = 1;
    while (size <= len / 2)
        size *= 2;
    return (mc_core_t){size, len - size};
}

/* Index on the line of a member of the core; its first slice too. The core's size gives the length. */
static inline int32_t mc_core_index(mc_core_t c, int32_t member)
{
    return member < c.surplus ? 2 * member : member + c.surplus;
}

/* The member that is at, or stands for, an index on the line. */
static inline int32_t mc_core_member(mc_core_t c, int32_t index)
{
    return index < 2 * c.surplus ? index / 2 : index - c.surplus;
}

static inline bool mc_core_is_surplus(mc_core_t c, int32_t index)
{
    return index < 2 * c.surplus && index % 2 == 1;
}

#endif
