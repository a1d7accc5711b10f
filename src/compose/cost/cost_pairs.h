/*
 * An alltoall that gathers: the first rank of each line of the innermost dimension collects what the line's
 * ranks send, exchanges it with the first ranks of other lines, and scatters what arrives. The closed forms
 * assume lines of equal length; these functions adapt them to lines of unequal length.
 */
#ifndef MC_COMPOSE_COST_PAIRS_H
#define MC_COMPOSE_COST_PAIRS_H

#include "compose/cost/cost.h"

/* The data that a rank of a line along `dims` handles, as a multiple of what one rank sends in all: the
 * number of ranks of the longest line that gathers; between boxes of unequal sizes, what the box with the
 * most to send has for the others, spread evenly over its lines. */
mc_ratio_t mc_pairs_share(const mc_mesh_t *mesh, mc_dims_t dims);

/* Corrects the number of messages of all ranks of a ragged mesh, and what they carry, to the lines' real
 * lengths. */
void mc_pairs_correct(mc_phase_cost_t *cost, const mc_mesh_t *mesh, mc_dims_t dims);

#endif
