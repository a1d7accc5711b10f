/* How the builder's files make steps of tiles, and sealing derives what these wait for; internal to src/plan. */
#ifndef MC_PLAN_STEPS_H
#define MC_PLAN_STEPS_H

#include "plan/builder.h"

void mc_append(mc_builder_t *b, mc_step_t step);

/* A range on a ring is that of a message. */
static inline mc_step_t mc_step_of(mc_op_t op, int32_t peer, mc_buffer_t src, mc_buffer_t dst,
                                   mc_range_t r)
{
    return (mc_step_t){.op = (uint8_t)op,
                       .src = (uint8_t)src,
                       .dst = (uint8_t)dst,
                       .peer = peer,
                       .first = op == MC_OP_RECV ? r.ring : r.first,
                       .run = r.run,
                       .nrun = r.nrun,
                       .stride = r.stride,
                       .to = op == MC_OP_SEND ? r.ring : r.first};
}

/* The context of a call per range; the peer is a rank, -1 for none. */
typedef struct {
    mc_builder_t *b;
    int32_t peer;
} mc_towards_t;

/* `peer` is a place, as in the calls of generators. */
static inline mc_towards_t mc_towards(mc_builder_t *b, int32_t peer)
{
    return (mc_towards_t){b, peer < 0 ? peer : mc_mesh_rank_at(&b->head.layout.mesh, peer)};
}

/* Calls `each` for the ranges of a tile of the vector. */
static inline void mc_each_range(mc_builder_t *b, int32_t peer, const mc_tile_t *v,
                                 void (*each)(void *towards, mc_range_t range))
{
    mc_towards_t towards = mc_towards(b, peer);
    mc_tile_ranges(&b->head.layout, v, each, &towards);
}

/* Patterns: chunks that no step tells apart are one cell, so that time and memory grow with the number of steps, not of
 * chunks. */

/* Steps in program order, which stay the caller's; successors as in a plan. */
typedef struct {
    const mc_step_t *step;
    uint32_t n, n_edges;
    uint32_t *succ_off, *succ, *n_pred; /* one allocation */
} mc_pattern_t;

/* Fills in the successors of p->step, whose ranges lie in `chunks` chunks, or in `scratch` chunks
 * of SCRATCH. mc_pattern_free also frees the outcome of a failure. */
int mc_pattern_derive(mc_pattern_t *p, uint32_t chunks, uint32_t scratch);
void mc_pattern_free(mc_pattern_t *p);

#endif
