/*
 * One-hop algorithms on one line. star: the root exchanges with every other rank. full mesh: every
 * rank exchanges with every other, starting with its right neighbour so that no two send to the
 * same rank at a time. digits: the exception, several hops.
 */
#ifndef MC_DIRECT_DIRECT_H
#define MC_DIRECT_DIRECT_H

#include "plan/builder.h"

mc_tile_t mc_star_bcast(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_star_reduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_star_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_star_gather(mc_builder_t *b, mc_line_t l, mc_tile_t v);

mc_tile_t mc_fullmesh_allgather(mc_builder_t *b, mc_line_t l, mc_tile_t v);
mc_tile_t mc_fullmesh_reduce_scatter(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* Every rank sends its whole vector to every other and adds in the order of the line, so that all
 * get the same bits. */
mc_tile_t mc_fullmesh_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/* Pairwise exchange: in round k every rank sends to the k-th on the right and receives from the
 * k-th on the left. Slice j holds the block for rank j before, the block from rank j after. */
mc_tile_t mc_pairwise_alltoall(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* Store and forward: one exchange per digit of the index, with the prime factors of the line's
 * length as radices. Bruck, Ho, Kipnis, Upfal, Weathersby 1997, §3, for lengths with these
 * factors. */
mc_tile_t mc_digits_alltoall(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* Returns the radix of the digit whose unit is `unit`: the smallest factor of the remaining length;
 * 1 at the end. */
int32_t mc_digits_radix(int32_t len, int32_t unit);

#endif
