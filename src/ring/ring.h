/*
 * Bucket algorithms on one line: slices travel round the ring, or along the chain, one hop a turn.
 * Chan, Heimlich, Purkayastha, van de Geijn: Collective communication: theory, practice, and
 * experience, 2007, §5.
 */
#ifndef MC_RING_RING_H
#define MC_RING_RING_H

#include "plan/builder.h"

/* (p-1)(alpha + n/p beta + n/p gamma). Rank k ends with slice k. */
mc_tile_t mc_ring_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* (p-1)(alpha + n/p beta). */
mc_tile_t mc_ring_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* Both, staggered as in the textbook: between them rank k holds slice k+1. */
mc_tile_t mc_ring_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/* (p-2+k)(alpha + n/k beta) with the vector in k segments: the root's right neighbour first. */
mc_tile_t mc_chain_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* The same way back: from the root's right neighbour all the way round to the root. */
mc_tile_t mc_chain_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/*
 * On a torus, a line through two dimensions: half of the vector by each of two edge-disjoint spanning trees (Johnsson,
 * Ho: Optimum broadcasting and personalized communication in hypercubes, 1989), whose edges are links of its
 * rings. (r+c-2+k)(alpha + n/2k beta) on r times c ranks with a link for each dimension.
 */
mc_tile_t mc_edst_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_edst_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);

#endif
