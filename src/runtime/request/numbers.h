/*
 * Operation numbers of calls.
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
#ifndef MC_REQUEST_NUMBERS_H
#define MC_REQUEST_NUMBERS_H

#include "runtime/handle/handle.h"

enum { MC_CALL_NUMBERS = 1 << (MC_TAG_OPERATION_BITS - 1) };

static inline uint32_t mc_next_call(meshcoll_t *h)
{
    return h->n_calls++ % MC_CALL_NUMBERS;
}
static inline uint32_t mc_next_persistent(meshcoll_t *h)
{
    return MC_CALL_NUMBERS + h->n_persistent++ % (MC_TAG_GREETING - MC_CALL_NUMBERS);
}

/* Is it an alltoallv, which has a number more, for its counts? `given` may be of an older, shorter kind. */
static inline bool mc_call_exchanges(const meshcoll_args_t *given)
{
    return given->size >= sizeof *given && given->in_counts;
}

#endif
