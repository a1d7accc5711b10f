/*
 * One-hop algorithms on one line. star: the root exchanges with everyone. full mesh: everyone with
 * everyone, each starting with its right neighbour so that no two aim at the same rank.
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
/* Everyone sends all to everyone and adds in the order of the line, so that all get the same bits. */
mc_tile_t mc_fullmesh_allreduce(mc_builder_t *b, mc_line_t l, mc_tile_t v);

/* Pairwise exchange: in round k everyone sends to the k-th on the right and receives from the k-th on
 * the left. Slice j holds what is for rank j before, what is from rank j after. */
mc_tile_t mc_pairwise_alltoall(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* Store and forward: an exchange for each digit of the index, the prime factors of the line's length as
 * radices. Bruck, Ho, Kipnis, Upfal, Weathersby 1997, §3, where the length has these factors. */
mc_tile_t mc_digits_alltoall(mc_builder_t *b, mc_line_t l, mc_tile_t v);
/* The radix of the digit that counts `unit`s, the smallest factor of what is left; 1 at the end. */
int32_t mc_digits_radix(int32_t len, int32_t unit);

#endif
