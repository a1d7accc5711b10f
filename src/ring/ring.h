/*
 * Bucket algorithms on one line: slices travel round the ring, or along the chain, one hop per
 * turn. Costs are for a vector of n bytes on p ranks. Chan, Heimlich, Purkayastha, van de Geijn:
 * Collective communication: theory, practice, and experience, 2007, §5.
 */
#ifndef MC_RING_RING_H
#define MC_RING_RING_H

#include "plan/builder.h"

/* (p-1)(alpha + n/p beta + n/p gamma). Rank k ends with slice k. */
mc_tile_t mc_ring_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* (p-1)(alpha + n/p beta). */
mc_tile_t mc_ring_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* Reduce-scatter, then allgather, staggered as in the textbook: in between, rank k holds slice
 * k+1. */
mc_tile_t mc_ring_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/* (p-2+k)(alpha + n/k beta) with the vector in k segments; the root sends to its right
 * neighbour. */
mc_tile_t mc_chain_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* A chain from the root's right neighbour all the way round to the root, the reverse of the broadcast. */
mc_tile_t mc_chain_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/*
 * On a torus, a line through two dimensions carries one half of the vector along each of two
 * edge-disjoint spanning trees, whose edges are links of the torus's rings. (r+c-2+k)(alpha + n/2k
 * beta) on r times c ranks with a link per dimension and k segments. Johnsson, Ho: Optimum
 * broadcasting and personalized communication in hypercubes, 1989.
 */
mc_tile_t mc_edst_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_edst_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);

#endif
