/*
 * What the lines of an alltoall carry that gathers along the innermost dimension, where that is more or
 * less than lines of equal length do.
 */
#ifndef MC_COMPOSE_COST_PAIRS_H
#define MC_COMPOSE_COST_PAIRS_H

#include "compose/cost/cost.h"

/* Of what one rank sends, so much stands on a line along `dims` at one of its ranks: as many times as the
 * longest of the lines that gather has ranks, and between boxes of unequal sizes as the one with most to
 * send has for the others, spread evenly over its lines. */
mc_ratio_t mc_pairs_share(const mc_mesh_t *mesh, mc_dims_t dims);

/* Lines of unequal lengths: messages of all ranks, and what they carry, are those of the lines there are. */
void mc_pairs_correct(mc_phase_cost_t *cost, const mc_mesh_t *mesh, mc_dims_t dims);

#endif
