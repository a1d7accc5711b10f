/*
 * Operation numbers of calls, by which ranks agree without exchanging anything.
 *
 * Messages match by operation number. All ranks make the same calls on a mesh in the same order
 * (MPI's rule), and each call takes the next number when it is made: in a group or not, whether it
 * succeeds, is refused or has nothing to do. So the same operation has the same number on all
 * ranks. A persistent request takes its number when it is made, because starts may be in any order,
 * and keeps it until it is freed (numbers.c). All its runs share it: they follow each other, and
 * messages of a pair with one number match in order. Calls and persistent requests take numbers from
 * separate halves of the range. The barriers of leads (handle/lead.h) have their own at the end of the
 * second half: each persistent request one, and calls so many in turn. The agreements of what calls
 * learn (call/adapt.h) share one more, and those of numbers another; persistent requests learn by
 * their barriers.
 *
 * Which request serves a call is therefore local: it may depend on what has completed on this rank,
 * which differs between ranks. A request is a plan with its memory, and with the call's number it
 * produces the same messages as any other request of the same collective, root and strategy.
 *
 * The choice of the strategy must not differ between ranks, and does not (choice.h, call/adapt.h). New connections need
 * no agreement: both ends make one when their first plan with this peer is made, at calls that may differ, and a run
 * waits until its own are greeted (connect/greet.h).
 */
#ifndef MC_CALL_NUMBERS_H
#define MC_CALL_NUMBERS_H

#include "runtime/call/request.h"

enum {
    MC_CALL_NUMBERS = MC_TAG_CALLS,
    MC_BARRIER_NUMBERS = 1 << 8,
    MC_PERSISTENT_NUMBERS = (MC_TAG_ROUTE - MC_CALL_NUMBERS - MC_BARRIER_NUMBERS - 2) / 4 * 2,
    MC_FIRST_BARRIER = MC_CALL_NUMBERS + 2 * MC_PERSISTENT_NUMBERS,
    MC_AGREEMENT_NUMBER = MC_FIRST_BARRIER + MC_BARRIER_NUMBERS, /* they follow each other */
    MC_CENSUS_NUMBER                                             /* of numbers.c; so do they */
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
/* The number of the next persistent request: one that no rank uses (numbers.c). ERR_UNSUPPORTED, on all ranks alike,
 * where all are in use. A failure of the mesh, or ERR_INVALID_ARG in a callback, where it would have to wait; then, too,
 * *number is one that no request has. */
int mc_persistent_take(meshcoll_t *h, uint32_t *number);

/* Takes the numbers of a call. They depend on the call, not on its strategy, so that ranks agree on the
 * next call's numbers even where one fails early. Where calls are compared, each takes as many as
 * any other, so that ranks that make different calls meet in the comparison. */
static inline mc_numbers_t mc_take_numbers(meshcoll_t *h, bool persistent, bool exchanges)
{
    const bool compared = h->hooks->compare;
    mc_numbers_t n = {0};
    if (!persistent || compared)
        n.own = mc_next_call(h);
    if (exchanges || compared)
        n.counts = mc_next_call(h);
    if (compared)
        n.check = mc_next_call(h);
    if (persistent || compared) { /* last, as it may wait, and callbacks make calls then */
        uint32_t own;
        const int status = mc_persistent_take(h, &own);
        n.own = persistent ? own : n.own;
        n.status = persistent ? status : MESHCOLL_OK;
    }
    return n;
}

/* Is it an alltoallv, which takes a second number for its counts? `given` may be an older, shorter
 * struct, or NULL. */
static inline bool mc_call_exchanges(const meshcoll_args_t *given)
{
    return given && given->size >= offsetof(meshcoll_args_t, counts_at_root) && given->in_counts;
}

#endif
