/*
 * All ranks' plans together, and the symbolic machine that runs them: a chunk's value is a leaf
 * (rank, chunk) or the sum of two values, so that it says who contributed, in which order. Verifier
 * and trace read it. The only place that holds a whole world, with the simulator.
 */
#ifndef MC_PLAN_WORLD_H
#define MC_PLAN_WORLD_H

#include "plan/plan.h"

typedef struct {
    int32_t n_ranks;
    const mc_plan_t *const *plan; /* by rank; borrowed */
} mc_world_t;

/* A value's number; MC_NOTHING where nothing was written. Equal sums, in equal order, have equal
 * numbers. */
typedef uint32_t mc_value_t;
enum { MC_NOTHING = 0 };

typedef struct mc_machine mc_machine_t;

/* `in_place`: chunk c of IN and OUT are one memory where the rank holds it in both. The plans are of
 * one collective on one layout. */
int mc_machine_create(const mc_world_t *world, bool in_place, mc_machine_t **machine);
void mc_machine_destroy(mc_machine_t *machine);
/* Back to the start; values keep their numbers. */
void mc_machine_reset(mc_machine_t *machine, bool in_place);

/* MC_NOTHING also for chunks that the rank's buffer does not hold. */
mc_value_t mc_machine_value(const mc_machine_t *m, int32_t rank, mc_buffer_t buffer,
                            uint32_t chunk);
/* The value that rank's IN chunk starts with. */
mc_value_t mc_machine_leaf(const mc_machine_t *m, int32_t rank, uint32_t chunk);
/* Ranks that contributed to a value, in the order of the sum, duplicates included; `n` counts all of
 * them, `ranks` takes the first `capacity`. Returns the chunk they are of, or UINT32_MAX where
 * chunks are mixed. */
uint32_t mc_value_ranks(const mc_machine_t *m, mc_value_t value, int32_t *ranks, uint32_t capacity,
                        uint32_t *n);

/* The operands of a sum, in its order; false for a leaf, and outputs unset. */
bool mc_value_operands(const mc_machine_t *m, mc_value_t value, mc_value_t *left,
                       mc_value_t *right);

/*
 * Run one step; `step` is its index in the rank's plan. A message is one local action (send), then
 * another (recv), or both at once. RECV_REDUCE adds the message to the local operand, REDUCE dst to
 * src: the sum names src's ranks first, or the message's where the step says so. ERR_PLAN with a sentence when a step
 * reads nothing, writes outside, ….
 */
int mc_machine_local(mc_machine_t *m, int32_t rank, uint32_t step);
int mc_machine_message(mc_machine_t *m, int32_t from, uint32_t send, int32_t to, uint32_t recv);
/* `message`: one value for each chunk of the step. */
int mc_machine_send(mc_machine_t *m, int32_t rank, uint32_t step, mc_value_t *message);
int mc_machine_recv(mc_machine_t *m, int32_t rank, uint32_t step, const mc_value_t *message);

/*
 * Time steps of a trace: every message takes one, local steps take none; a rank sends one message
 * and receives one at a time, both may go at once, in program order. A local step runs as soon as it
 * may, before the messages of its time step: time n_times for what comes after the last message.
 */
typedef struct {
    uint32_t n_times;
    uint32_t **time; /* [rank][step]: the time step in which it runs (0-based) */
} mc_times_t;

/* ERR_PLAN when messages do not match, or wait for each other in a circle. */
int mc_world_times(const mc_world_t *world, mc_times_t *times);
void mc_times_free(mc_times_t *times, int32_t n_ranks);

#endif
