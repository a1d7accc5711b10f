/*
 * The builder takes the calls of a generator, in textbook order, and finds out where the data is:
 * a chunk is read from IN until this rank has written it, and from the place written after that.
 */
#ifndef MC_PLAN_BUILDER_H
#define MC_PLAN_BUILDER_H

#include "plan/plan.h"

typedef struct {
    mc_plan_t head;   /* step, succ, … are unset until sealing */
    mc_buffer_t work; /* OUT where it holds the whole vector, else SCRATCH */
    mc_bitmap_t done; /* chunks that stand in `work` */
    /* empty chunks of ranks that are not there, where IN holds blocks: they stand anywhere */
    mc_bitmap_t absent; /* of no bits: there are none */
    mc_step_t *step;
    uint32_t n_steps, capacity;
    uint8_t phase;          /* of the steps that follow */
    uint32_t segment_start; /* first step of the segment being built */
    int32_t turns, turn;    /* alltoall: phases of a segment, and those that are built */
    bool counting;          /* the segment being built only counts its phases */
    struct mc_pairs *pairs; /* of an alltoall whose blocks come together in lines; NULL: none do */
    int status;             /* the first failure; later calls do nothing */
} mc_builder_t;

int mc_builder_init(mc_builder_t *b, const mc_layout_t *layout, meshcoll_collective_t collective,
                    int32_t rank, int32_t root, mc_holds_t in, mc_holds_t out);
void mc_builder_free(mc_builder_t *b);

/* What generators call. Chunks of `v` on both sides; the peer, a place on the mesh as in a line, makes
 * the matching call. */
void mc_send(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_recv(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_recv_reduce(mc_builder_t *b, int32_t peer, mc_tile_t v);        /* mine (+) the message */
void mc_recv_reduce_before(mc_builder_t *b, int32_t peer, mc_tile_t v); /* the message (+) mine */

/* A second accumulator, for sums that must come in one order on every rank. */
void mc_recv_aside(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_recv_reduce_aside(mc_builder_t *b, int32_t peer, mc_tile_t v); /* aside (+) the message */
void mc_reduce_aside(mc_builder_t *b, mc_tile_t v);                    /* mine = aside (+) mine */
void mc_reduce_behind(mc_builder_t *b, mc_tile_t v);                   /* mine = mine (+) aside */

/*
 * Alltoall. A block arrives in another chunk than it left from (by destination there, by source
 * here), so a phase sends what stands in one buffer and receives into the next: give and take as the
 * textbook does, then keep what stays, which ends the phase. Where chunks also change places inside a
 * rank, or what stays is several tiles, carry each of them, then end the phase by mc_turn. Which phase is
 * the last must be known: a first segment is built with `counting`.
 */
void mc_give(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_take(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_keep(mc_builder_t *b, mc_tile_t v);
void mc_carry(mc_builder_t *b, mc_tile_t from, mc_tile_t to); /* of one shape */
void mc_turn(mc_builder_t *b);

/* Lets steps [start, middle), of some segments, and those from `middle` on, of others, alternate in
 * program order, each in its own order: a turn (sends, then receives) of the one, one of the other. */
void mc_alternate(mc_builder_t *b, uint32_t start, uint32_t middle);

/* The end of a segment: what OUT must hold and does not yet is copied there. */
void mc_settle(mc_builder_t *b, uint32_t segment);

/* Derives dependencies, numbers the messages of each pair and freezes. The builder stays the
 * caller's to free. Returns the builder's first failure if it had one. */
int mc_seal(const mc_builder_t *b, mc_plan_t **plan);

/* For tests and tools: the same from bare steps (seq is renumbered). `head` as in a builder. */
int mc_seal_steps(const mc_plan_t *head, const mc_step_t *step, uint32_t n_steps, mc_plan_t **plan);

#endif
