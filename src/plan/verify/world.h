/*
 * The plans of all ranks, and the symbolic machine that runs them. A chunk's value is a leaf (rank,
 * chunk) or the sum of two values, so that it names the ranks that contributed, and their order.
 * Only the verifier and the tools (trace, count) hold the plans of all ranks at once.
 */
#ifndef MC_PLAN_WORLD_H
#define MC_PLAN_WORLD_H

#include "base/arena.h"
#include "plan/plan.h"

typedef struct {
    int32_t n_ranks;
    const mc_plan_t *const *plan; /* by rank; borrowed */
} mc_world_t;

/* A value's number; MC_NOTHING where nothing was written. Equal sums in equal order have equal
 * numbers. */
typedef uint32_t mc_value_t;
enum { MC_NOTHING = 0 };

typedef struct mc_machine mc_machine_t;

/* `in_place`: chunk c of IN and OUT are the same memory where the rank holds it in both. All plans
 * must belong to one collective on one layout. */
int mc_machine_create(const mc_world_t *world, bool in_place, mc_machine_t **machine);
void mc_machine_destroy(mc_machine_t *machine);
/* Resets all chunks to their initial values; values keep their numbers. */
void mc_machine_reset(mc_machine_t *machine, bool in_place);

/* Returns a chunk's value; MC_NOTHING also for chunks that the rank's buffer does not hold. */
mc_value_t mc_machine_value(const mc_machine_t *m, int32_t rank, mc_buffer_t buffer,
                            uint32_t chunk);
/* Returns the initial value of a chunk of the rank's IN. */
mc_value_t mc_machine_leaf(const mc_machine_t *m, int32_t rank, uint32_t chunk);
/* Lists the ranks that contributed to a value, in the order of the sum, duplicates included. `n`
 * counts all of them, `ranks` receives the first `capacity`. Returns their chunk, or UINT32_MAX
 * where chunks are mixed. */
uint32_t mc_value_ranks(const mc_machine_t *m, mc_value_t value, int32_t *ranks, uint32_t capacity,
                        uint32_t *n);

/* Returns the operands of a sum, in its order; false for a leaf, and the outputs stay unset. */
bool mc_value_operands(const mc_machine_t *m, mc_value_t value, mc_value_t *left,
                       mc_value_t *right);

/*
 * Run one step; `step` is its index in the rank's plan. A message is a send at one rank, then a
 * receive at another. The operands of a sum are in the order of mc_op_t, or the
 * message comes first with MC_MESSAGE_FIRST. ERR_PLAN with a sentence when a step reads a chunk
 * without a value or accesses one outside its buffers.
 */
int mc_machine_local(mc_machine_t *m, int32_t rank, uint32_t step);
/* `message`: one value per chunk of the step. */
int mc_machine_send(mc_machine_t *m, int32_t rank, uint32_t step, mc_value_t *message);
int mc_machine_recv(mc_machine_t *m, int32_t rank, uint32_t step, const mc_value_t *message);

/*
 * Time steps of a trace. A message takes one, a local step takes none. A rank sends one message and
 * receives one at a time, in program order, both at once where possible. A local step runs as early
 * as it can, before the messages of its time step; after the last message, at time n_times.
 */
typedef struct {
    mc_arena_t arena;
    uint32_t n_times;
    uint32_t **time; /* [rank][step]: the time step in which it runs, from 0 */
} mc_times_t;

/* ERR_PLAN when messages do not match, or wait for each other in a cycle. The caller frees their arena. */
int mc_world_times(const mc_world_t *world, mc_times_t *times);

#endif
