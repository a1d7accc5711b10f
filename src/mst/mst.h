/*
 * Minimum-spanning-tree algorithms on one line. An interval of ranks is halved repeatedly; the half
 * without the root gets a root of its own, at its far end. They work for any length and root, and
 * the messages of a turn never share a link of the line. Costs are for a vector of n bytes on p
 * ranks. Chan et al. 2007, §4 (MSTBcast and its kin).
 */
#ifndef MC_MST_MST_H
#define MC_MST_MST_H

#include "mesh/aligned.h"
#include "plan/builder.h"

/* log p (alpha + n beta) */
mc_tile_t mc_mst_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* log p (alpha + n beta + n gamma) */
mc_tile_t mc_mst_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* log p alpha + (p-1)/p n beta, both */
mc_tile_t mc_mst_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_mst_gather(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* The cost of mc_mst_reduce. Halves are cut as the aligned tree is, so that the sum has its
 * brackets (mesh/aligned.h). */
mc_tile_t mc_mst_reduce_aligned(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/* The range [lo, hi], inclusive, is cut into two halves, each with a root. */
typedef struct {
    int32_t lo, mid, hi; /* [lo, mid] and [mid + 1, hi] */
    int32_t near, far;   /* the given root, and the root of the half that has none yet */
} mc_halves_t;

typedef mc_halves_t (*mc_halve_t)(int32_t lo, int32_t hi, int32_t root);

static inline mc_halves_t mc_halve_at(int32_t lo, int32_t mid, int32_t hi, int32_t root)
{
    return (mc_halves_t){lo, mid, hi, root, root <= mid ? hi : lo};
}
static inline mc_halves_t mc_halve(int32_t lo, int32_t hi, int32_t root)
{
    return mc_halve_at(lo, lo + (hi - lo) / 2, hi, root);
}
static inline mc_halves_t mc_halve_aligned(int32_t lo, int32_t hi, int32_t root)
{
    return mc_halve_at(lo, lo + mc_aligned_left(hi - lo + 1) - 1, hi, root);
}

#endif
