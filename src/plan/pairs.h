/*
 * An alltoall that gathers: each line along the innermost dimension gathers the blocks of its ranks
 * at its first rank; these ranks exchange blocks on behalf of all, then scatter what they received
 * along their lines. Boxes of unequal sizes need it, because only the first ranks of their fold
 * lines form a grid.
 *
 * What these ranks pass on is one block per rank of one line and rank of another, so the chunks of
 * SCRATCH are pairs. A chunk of the vector is a line and a place on it. A pair is a line, the place
 * of the block's source on its line, and the place of its destination on its own. SCRATCH therefore
 * has `depth` chunks per chunk of the vector, as many as a line has places, and every message is
 * one range: a line, all pairs of one source place, or all pairs of one destination place.
 *
 * Each exchange receives into a part of SCRATCH of its own, so that a chunk is the same pair
 * throughout. Pairs of shorter lines are partly empty; which ones depends on both lines.
 */
#ifndef MC_PLAN_PAIRS_H
#define MC_PLAN_PAIRS_H

#include "plan/builder.h"

typedef struct mc_pairs mc_pairs_t;

/* What the calls of a generator mean: mc_send and mc_recv run along the line itself to gather and
 * to scatter. */
typedef enum { MC_PAIRS_GATHER, MC_PAIRS_EXCHANGE, MC_PAIRS_SCATTER } mc_pairs_way_t;

/* Prepares a builder that has no steps yet and counts its phases first. ERR_INVALID_ARG: too many
 * chunks. */
int mc_pairs_init(mc_builder_t *b);
void mc_pairs_free(mc_pairs_t *pairs); /* NULL is allowed */
/* Begins a phase. */
void mc_pairs_begin(mc_builder_t *b, mc_pairs_way_t way);

/* The builder's calls for an alltoall with pairs. */
void mc_pairs_send(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_pairs_recv(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_pairs_give(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_pairs_take(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_pairs_keep(mc_builder_t *b, mc_tile_t v);
void mc_pairs_turn(mc_builder_t *b);
void mc_pairs_settle(mc_builder_t *b, uint32_t segment);

#endif
