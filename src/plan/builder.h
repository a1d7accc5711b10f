/*
 * The builder turns the calls of a generator, made in textbook order, into steps. It tracks where
 * the data is: a chunk is read from IN until this rank has written it, then from the place it was
 * written to.
 */
#ifndef MC_PLAN_BUILDER_H
#define MC_PLAN_BUILDER_H

#include "plan/plan.h"

typedef struct {
    mc_plan_t head;   /* step, succ, … are unset until sealing */
    mc_buffer_t work; /* OUT where it holds the whole vector, else SCRATCH */
    mc_bitmap_t done; /* chunks whose newest value is in `work` */
    /* empty chunks of absent ranks, where IN holds blocks: any buffer will do for them */
    mc_bitmap_t absent; /* no bits: there are none */
    mc_step_t *step;
    uint32_t n_steps, capacity;
    uint8_t phase;          /* of the steps appended next */
    uint32_t segment_start; /* first step of the segment being built */
    int32_t turns, turn;    /* alltoall: phases of a segment, and those built so far */
    bool counting;          /* this segment only counts its phases and appends no steps */
    struct mc_pairs *pairs; /* of an alltoall that gathers blocks along lines; NULL otherwise */
    int status;             /* the first failure; later calls do nothing */
} mc_builder_t;

int mc_builder_init(mc_builder_t *b, const mc_layout_t *layout, meshcoll_collective_t collective,
                    int32_t rank, int32_t root, mc_holds_t in, mc_holds_t out);
void mc_builder_free(mc_builder_t *b);

/* The calls of generators. Both sides name the same tile `v`; the peer makes the matching call. A
 * peer is a place on the mesh, as in a line. */
void mc_send(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_recv(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_recv_reduce(mc_builder_t *b, int32_t peer, mc_tile_t v);        /* own (+) message */
void mc_recv_reduce_before(mc_builder_t *b, int32_t peer, mc_tile_t v); /* message (+) own */

/* Receives and adds up a message of the rank of that index on the line. On a line of two the lower rank's operand is the
 * left one on both ranks, so that all algorithms sum in one order there. */
void mc_recv_reduce_along(mc_builder_t *b, mc_line_t l, int32_t from, mc_tile_t v);

/* Sums that need the same order on every rank have a second accumulator, aside. */
void mc_recv_aside(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_recv_reduce_aside(mc_builder_t *b, int32_t peer, mc_tile_t v); /* aside (+) message */
void mc_reduce_aside(mc_builder_t *b, mc_tile_t v);                    /* own = aside (+) own */
void mc_reduce_behind(mc_builder_t *b, mc_tile_t v);                   /* own = own (+) aside */

/*
 * Alltoall. A block arrives in another chunk than it left from: chunks are numbered by destination
 * at the source and by source at the destination. So a phase sends from one buffer and receives
 * into the next: mc_give and mc_take in textbook order, then mc_keep for the blocks that stay,
 * which ends the phase. Where blocks also change chunks within a rank, or several tiles stay, call
 * mc_carry for each, then mc_turn to end the phase. The builder must know which phase is the last:
 * the first segment is built with `counting` set.
 */
void mc_give(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_take(mc_builder_t *b, int32_t peer, mc_tile_t v);
void mc_keep(mc_builder_t *b, mc_tile_t v);
void mc_carry(mc_builder_t *b, mc_tile_t from, mc_tile_t to); /* of equal shape */
void mc_turn(mc_builder_t *b);

/*
 * Ends an exchange: since step `start` this rank sent messages, then received as many others of the
 * same shape. Where it sent more than MC_PROGRAM_WINDOW to one peer, because a tile is several
 * ranges, they now alternate: send, receive, send, receive. Otherwise all ranks would wait in
 * program order for room for the rest of what they send. No chunk that was received may be one of
 * those sent.
 */
void mc_in_turns(mc_builder_t *b, uint32_t start);

/* Interleaves steps [start, middle), of some segments, with those from `middle` on, of others, turn
 * by turn; each keeps its own order. A turn is what a rank sends and then receives. */
void mc_alternate(mc_builder_t *b, uint32_t start, uint32_t middle);

/* Ends a segment: copies to OUT what it must hold and does not yet. */
void mc_settle(mc_builder_t *b, uint32_t segment);

/* Derives dependencies, numbers the messages of each pair of ranks and freezes the plan. The
 * builder stays the caller's to free. Returns the builder's first failure if it had one. */
int mc_seal(const mc_builder_t *b, mc_plan_t **plan);

/* mc_seal() from bare steps, for tests and tools; seq is renumbered. `head` as in a builder. */
int mc_seal_steps(const mc_plan_t *head, const mc_step_t *step, uint32_t n_steps, mc_plan_t **plan);

#endif
