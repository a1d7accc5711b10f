/*
 * An alltoall whose blocks come together in lines: each line along the innermost dimension gathers what
 * its ranks send at the first of them, these exchange for all, and scatter what has come. (Between boxes of
 * unequal sizes, where only the first ranks of the lines along fold form a grid.)
 *
 * What is passed on is one block for each rank of a line and each rank of another: SCRATCH's chunks are
 * pairs. A chunk of the vector is a line and a place on it; a pair is a line, the place on its line of
 * whom the block is from, and that of whom it is for. So SCRATCH has `depth` chunks for each of the
 * vector's, as many as a line has places, and whatever goes from rank to rank is one range: a line, all
 * that is from one place, all that is for one.
 *
 * Each exchange receives into a part of SCRATCH of its own, so that the same chunk is the same pair from
 * start to end: of lines that are shorter some pairs are empty, and which depends on both lines.
 */
#ifndef MC_PLAN_PAIRS_H
#define MC_PLAN_PAIRS_H

#include "plan/builder.h"

typedef struct mc_pairs mc_pairs_t;

/* What the calls of a generator mean: mc_send and mc_recv along the line itself, in either direction. */
typedef enum { MC_PAIRS_GATHER, MC_PAIRS_EXCHANGE, MC_PAIRS_SCATTER } mc_pairs_way_t;

/* For a builder that has no steps yet and counts its phases first. ERR_INVALID_ARG: too many chunks. */
int mc_pairs_init(mc_builder_t *b);
void mc_pairs_free(mc_pairs_t *pairs); /* NULL is allowed */
/* Before each phase. */
void mc_pairs_begin(mc_builder_t *b, mc_pairs_way_t way);

/* The builder's calls where it has pairs. */
void mc_pairs_send(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_pairs_recv(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_pairs_give(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_pairs_take(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_pairs_keep(mc_builder_t *b, mc_tile_t v);
void mc_pairs_turn(mc_builder_t *b);
void mc_pairs_settle(mc_builder_t *b, uint32_t segment);

#endif
