/*
 * Operation numbers of calls, by which ranks agree without exchanging anything.
 *
 * Messages match by operation number. All ranks make the same calls on a mesh in the same order
 * (MPI's rule), and each call takes the next number when it is made: in a group or not, whether it
 * succeeds, is refused or has nothing to do. So the same operation has the same number on all
 * ranks. A persistent request takes its number when it is made, because starts may be in any order,
 * and all its runs share it: they follow each other, and messages of a pair with one number match
 * in order. Calls and persistent requests take numbers from separate halves of the range. The barriers of leads
 * (handle/lead.h) have their own at the end of the second half: each persistent request one, and calls
 * so many in turn. The agreements of what calls learn (call/adapt.h) share one more.
 *
 * Which request serves a call is therefore local: it may depend on what has completed on this rank,
 * which differs between ranks. A request is a plan with its memory, and with the call's number it
 * produces the same messages as any other request of the same collective, root and strategy.
 *
 * The choice of the strategy must not differ between ranks, and does not (choice.h, call/adapt.h). New connections need
 * no agreement: both ends make one when their first plan with this peer is made, at calls that may differ, and a run
 * waits until its own are greeted (connect/greet.h).
 */
#ifndef MC_REQUEST_NUMBERS_H
#define MC_REQUEST_NUMBERS_H

#include "runtime/handle/handle.h"

enum {
    MC_CALL_NUMBERS = MC_TAG_CALLS,
    MC_BARRIER_NUMBERS = 1 << 8,
    MC_PERSISTENT_NUMBERS = (MC_TAG_ROUTE - MC_CALL_NUMBERS - MC_BARRIER_NUMBERS - 1) / 2,
    MC_FIRST_BARRIER = MC_CALL_NUMBERS + 2 * MC_PERSISTENT_NUMBERS,
    MC_AGREEMENT_NUMBER = MC_FIRST_BARRIER + MC_BARRIER_NUMBERS /* they follow each other */
};

/* One thread at a time takes numbers. */
static inline uint32_t mc_take_number(_Atomic uint32_t *taken)
{
    const uint32_t n = atomic_load_explicit(taken, memory_order_relaxed);
    atomic_store_explicit(taken, n + 1, memory_order_relaxed);
    return n;
}

static inline uint32_t mc_next_call(meshcoll_t *h)
{
    return mc_take_number(&h->calls.n) % MC_CALL_NUMBERS;
}
static inline uint32_t mc_next_persistent(meshcoll_t *h)
{
    return MC_CALL_NUMBERS + mc_take_number(&h->calls.n_persistent) % MC_PERSISTENT_NUMBERS;
}

/* Takes the numbers of a call. They depend on the call, not on its strategy, so that ranks agree on the
 * next call's numbers even where one fails early. Where calls are compared, each takes as many as
 * any other, so that ranks that make different calls meet in the comparison. */
static inline mc_numbers_t mc_take_numbers(meshcoll_t *h, bool persistent, bool exchanges)
{
    const bool compared = h->hooks->compare;
    mc_numbers_t n = {0};
    if (!persistent || compared)
        n.own = mc_next_call(h);
    if (persistent || compared) {
        const uint32_t own = mc_next_persistent(h);
        n.own = persistent ? own : n.own;
    }
    if (exchanges || compared)
        n.counts = mc_next_call(h);
    if (compared)
        n.check = mc_next_call(h);
    return n;
}

/* Is it an alltoallv, which takes a second number for its counts? `given` may be an older, shorter
 * struct, or NULL. */
static inline bool mc_call_exchanges(const meshcoll_args_t *given)
{
    return given && given->size >= offsetof(meshcoll_args_t, counts_at_root) && given->in_counts;
}

#endif
