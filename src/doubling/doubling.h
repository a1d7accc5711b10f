/*
 * Algorithms on one line whose partners are a power of two apart, in ⌈log₂ p⌉ rounds or little
 * more: recursive doubling and halving, and Bruck's dissemination. Costs are for a vector of n
 * bytes on p ranks. Thakur, Rabenseifner, Gropp 2005; Bruck et al. 1997.
 *
 * Doubling and halving exchange between 2^k ranks, the core. On other lengths p = 2^k + surplus the
 * first 2 * surplus ranks form pairs. The lower rank of a pair is in the core on behalf of both:
 * its surplus neighbour sends its data before and receives its result after. Blocks of the core are
 * runs of ranks and of slices.
 */
#ifndef MC_DOUBLING_DOUBLING_H
#define MC_DOUBLING_DOUBLING_H

#include "mesh/aligned.h"
#include "plan/builder.h"

/* Sums (lower block) + (upper block): in the order of the line, the same bits everywhere. log p
 * (alpha + n beta + n gamma); where p is not a power of two, 2 alpha + 2 n beta + n gamma more. */
mc_tile_t mc_doubling_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* log p alpha + (p-1)/p n (beta + gamma); where p is not a power of two, up to twice the bytes
 * more. */
mc_tile_t mc_halving_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* log p alpha + (p-1)/p n beta; where p is not a power of two, up to twice the bytes more. */
mc_tile_t mc_doubling_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* ceil(log p) alpha + (p-1)/p n beta on any length. */
mc_tile_t mc_bruck_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/*
 * Halving, doubling and Bruck with their rounds in the other order, so that the round of the most bytes goes to the
 * nearest rank: for lines along which a network narrows. They send as many bytes as in their own order. The slices of a
 * round are every 2m-th; they are two messages where surplus ranks are among them, or where they wrap round the line's
 * end and that is not a multiple of their distance away. Where p is a power of two, halving near first sums by the
 * aligned tree. Bruck's far first, and backwards near first for sums, are the orders of PAT (Jeaugey 2025, arXiv
 * 2506.20252), with all slices of a round together.
 */
mc_tile_t mc_halving_near_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_doubling_far_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_bruck_far_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_bruck_near_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* The slices that a rank of `len` sends to the rank k before it. */
static inline int32_t mc_bruck_far_slices(int32_t len, int32_t k)
{
    return (len - k + 2 * k - 1) / (2 * k);
}

/* The number of slices below `len` whose index has the bit `unit`. */
static inline int32_t mc_bruck_bit_slices(int32_t len, int32_t unit)
{
    const int32_t rest = len % (2 * unit);
    return len / (2 * unit) * unit + (rest > unit ? rest - unit : 0);
}

/*
 * Sums whose brackets are the aligned tree, on any length (mesh/aligned.h). Blocks of 2^k ranks,
 * and a shorter one at the line's end, are joined in pairs, the smallest first; lower ranks are the
 * left operand.
 *
 * Allreduce is recursive doubling where p is a power of two. Otherwise blocks of unequal size are
 * joined in up to log p of the ceil(log p) rounds, and a rank of the smaller block sends to several
 * of the larger.
 *
 * Reduce-scatter: a rank sends each slice that is not its own once, with its partial sum: (p-1)/p n
 * (beta + gamma). These are log p messages where p is a power of two, else p-1.
 */
mc_tile_t mc_aligned_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_aligned_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* Alltoall in ceil(log p) rounds on any length, for small blocks: Bruck et al. 1997, §3.2. The
 * slices of a round are two messages where their last run is shorter. */
mc_tile_t mc_bruck_alltoall(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/* size: the largest power of two not above the line's length; surplus: the ranks beyond it. */
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

/* Returns the index on the line of a member of the core, which is also its first slice. For member
 * == size it is the line's length. */
static inline int32_t mc_core_index(mc_core_t c, int32_t member)
{
    return member < c.surplus ? 2 * member : member + c.surplus;
}

/* Returns the member at an index on the line, or on behalf of it. */
static inline int32_t mc_core_member(mc_core_t c, int32_t index)
{
    return index < 2 * c.surplus ? index / 2 : index - c.surplus;
}

/* Returns the most slices that members whose numbers are equal modulo `every` stand for. */
static inline int32_t mc_core_class(mc_core_t c, int32_t every)
{
    return c.size / every + (c.surplus + every - 1) / every;
}

static inline bool mc_core_is_surplus(mc_core_t c, int32_t index)
{
    return index < 2 * c.surplus && index % 2 == 1;
}

#endif
