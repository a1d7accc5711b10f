/*
 * Calls, blocking or not, and what serves them.
 *
 * How ranks agree: messages match by operation numbers, and the ranks give the same number to the
 * same operation without a word, because a number follows from the order of calls and from nothing
 * else. All ranks make the same calls on a mesh in the same order (MPI's rule); each call takes the
 * next number when it is made, in a group or not, whether it goes well, is refused or has nothing to do. A
 * persistent request takes a number when it is made, since starts may come in any order,
 * and its runs share that number: they follow each other, and a pair's messages of one number
 * match in order. Both kinds count in halves of their own.
 *
 * So which request serves a call is each rank's own affair: it may depend on what is complete on
 * this rank, which differs from rank to rank. A request is a plan with its memory; with the call's
 * number it makes the same messages as any other of the same collective, root and strategy.
 * Two things must still not differ: the choice of the strategy (choice.h: it depends on calls only),
 * and the greeting of new connections, for which both ends wait. A rank makes its first
 * request of a strategy and root when it is first called for, which is the same call on all ranks; any
 * other it makes finds its connections greeted.
 * Nor may it differ what a call leaves behind in the choices: one that is made again with the same
 * arguments skips checks, choice and binding, on some ranks perhaps, and uses its choice like any other.
 */
#ifndef MC_RUNTIME_CALLS_H
#define MC_RUNTIME_CALLS_H

#include "runtime/request.h"

uint32_t mc_next_call(meshcoll_t *h);
uint32_t mc_next_persistent(meshcoll_t *h);

/* The strategy of a call whose arguments are checked; *choice is the handle's, until the next. */
int mc_call_choose(meshcoll_t *h, const meshcoll_args_t *a, bool is_barrier, mc_memory_t **choice);

/* What a call asks for; arguments are checked. */
typedef struct {
    meshcoll_args_t args;
    const meshcoll_args_t *given; /* before they were checked; NULL: not to be known again */
    bool is_barrier;
    mc_workspace_t *staging; /* given over to whoever starts it; NULL: none */
    uint32_t number, counts; /* of mc_next_call: its own, and of an alltoallv its counts' */
} mc_asked_t;

/* Both numbers. They follow from the call alone, not from its strategy, so that ranks agree on the next
 * one's also where one fails early. */
void mc_call_number(meshcoll_t *h, const meshcoll_args_t *given, mc_asked_t *asked);

/* Starts an operation with a request of the handle's, which is the caller's until mc_request_tell or
 * mc_request_drop. */
int mc_call_start(meshcoll_t *h, const mc_asked_t *asked, meshcoll_request_t **request);
/* The same in parts, where the strategy is given: planned and wired, then bound. `passing`: as in
 * mc_operands_t. */
int mc_call_prepare(meshcoll_t *h, const meshcoll_args_t *a, const mc_strategy_t *strategy,
                    uint32_t number, meshcoll_request_t **request);
int mc_call_bind(meshcoll_request_t *r, const meshcoll_args_t *a, const mc_passing_t *passing);
/* A call's request that has ended, back to the handle's. */
void mc_call_release(meshcoll_request_t *r);

/* Checks, chooses, and runs to the end; in a group only checks. */
int mc_run(meshcoll_t *h, const meshcoll_args_t *given);
/* The same without waiting. */
int mc_begin(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request);
/* Is it an alltoallv, which has a number more, for its counts? `given` may be of an older, shorter kind. */
static inline bool mc_call_exchanges(const meshcoll_args_t *given)
{
    return given->size >= sizeof *given && given->in_counts;
}
/* A call that is refused before it is one, as it lacks arguments, counts or a place for its request: it takes its
 * numbers, and fails its group. `exchanges`: it is an alltoallv, and has two. `h` may be NULL. */
int mc_call_refuse(meshcoll_t *h, bool exchanges, int status);
/* The same of what would make a persistent request. */
int mc_init_refuse(meshcoll_t *h, bool exchanges, int status);
/* Makes a persistent request of it. */
int mc_init(meshcoll_t *h, const meshcoll_args_t *given, meshcoll_request_t **request);

/* Memory for the time of a call; grows, and is used again. */
mc_workspace_t *mc_take_memory(meshcoll_t *h);
void mc_return_memory(meshcoll_t *h, mc_workspace_t *workspace);

/* Before a handle ends: the requests that serve no call. And the memory. */
void mc_calls_forget(meshcoll_t *h);
void mc_calls_free_memory(meshcoll_t *h);

#endif
