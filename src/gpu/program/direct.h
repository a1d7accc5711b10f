/*
 * Which messages a sender may write straight to the receiver's OUT, where that memory is mapped
 * (meshcoll_register). Such a message has no slot: the receiver only waits for its flag, and finds
 * the data where its plan wants it. Until then nobody else may touch that place:
 *
 * - What the receiver's stream did before this launch is over when its kernel begins. It tells its
 *   senders so, each of which waits for that before its first direct message.
 * - The last earlier step of the receiver's that reads or writes the place must come before the
 *   sender's, by a chain of messages. That is proved for each message, with vector clocks: all
 *   ranks' plans are walked in program order, a send carries what its rank knows of the steps of
 *   all ranks, and a receive adds that to what its own rank knows. Other messages take slots.
 *
 * Edges are messages between these ranks alone, each step by itself; so is what joined messages,
 * credits and other ranks would add left out. A block exchanges no message in a pass where it has
 * no part of its chunks. So a place is proved by messages only of which each block has a part in
 * every pass in which it has one of the place's chunk.
 *
 * All ranks of a machine find the same, from the same plans. IN and OUT count as one memory, chunk
 * by chunk, unless it is said that they never are.
 */
#ifndef MC_DEVICE_DIRECT_H
#define MC_DEVICE_DIRECT_H

#include "base/arena.h"
#include "runtime/bind/binding.h"

typedef struct {
    int32_t n;                   /* ranks that may reach each other */
    const mc_binding_t *binding; /* of each, with its plan; measured, all with equal blocks */
    const unsigned char *linked; /* i * n + j: may i write to OUT of j? */
    bool apart;                  /* IN is not OUT's memory, on any of these ranks */
    uint32_t blocks;             /* that programs are lowered for */
} mc_direct_world_t;

/* By step of each rank. `peer`: index of the other rank of a message; -1: it is none of these, or
 * there is no message. `step`: of its plan, the other end. */
typedef struct {
    int32_t peer;
    uint32_t step;
    bool direct;
} mc_direct_step_t;

typedef struct {
    mc_arena_t arena;
    mc_direct_world_t world;
    size_t *first; /* by rank: where its steps begin */
    mc_direct_step_t *step;
} mc_direct_t;

/* ERR_NO_MEMORY. The caller frees its arena; the world's arrays must outlive it. */
int mc_direct_find(const mc_direct_world_t *world, mc_direct_t *direct);

/* The message of a step of a plan, by its rank there; NULL: it takes a slot, or is none. */
const mc_direct_step_t *mc_direct_message(const mc_direct_t *direct, int32_t rank, uint32_t step);

#endif
