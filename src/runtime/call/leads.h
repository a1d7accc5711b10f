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
 * so many in turn. The agreements of what calls learn (call/adapt.h) share one more; persistent requests agree by their
 * barriers.
 *
 * Which request serves a call is therefore local: it may depend on what has completed on this rank,
 * which differs between ranks. A request is a plan with its memory, and with the call's number it
 * produces the same messages as any other request of the same collective, root and strategy.
 *
 * The choice of the strategy must not differ between ranks, and does not (choice.h, call/adapt.h). New connections need
 * no agreement: both ends make one when their first plan with this peer is made, at calls that may differ, and a run
 * waits until its own are greeted (connect/greet.h).
 */
#ifndef MC_CALL_LEADS_H
#define MC_CALL_LEADS_H

#include "runtime/call/request.h"

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

/* Counting calls into the leads of handle/lead.h, and their barriers. The caller holds the mesh's lock. */

/* Prepares the lead of the calls of a mesh. */
void mc_lead_open(meshcoll_t *h);
/* Returns what a call counts: its bytes on all ranks, as far as every rank knows them. */
int64_t mc_lead_bytes(const meshcoll_t *h, const meshcoll_args_t *a);
/* For a call that begins an epoch, or whose epoch has to wait: where a count leaves less than nothing. */
void mc_lead_throttle(meshcoll_t *h, mc_lead_t *lead, int64_t bytes, mc_run_t *r);
/* Counts a call of that number and digest. `r` serves it, and its run waits if need be; NULL: it has no elements, and
 * nothing runs. */
static inline void mc_lead_call(meshcoll_t *h, int64_t bytes, uint32_t number, uint32_t digest,
                                mc_run_t *r)
{
    const uint64_t n_calls = atomic_load_explicit(&h->calls.n, memory_order_relaxed);
    atomic_store_explicit(&h->calls.made[number % MC_MADE_CALLS],
                          n_calls << 32 | number << 16 | (uint16_t)digest, memory_order_relaxed);
    h->leads.calls.hash = MC_LEAD_FACTOR * (h->leads.calls.hash + digest);
    if ((h->leads.calls.left -= bytes) < 0)
        mc_lead_throttle(h, &h->leads.calls, bytes, r);
}

/* Waits until all ranks have told that they were refused the same calls, if this one was refused any: for calls that
 * no lead counts. */
int mc_lead_agree(meshcoll_t *h);

/* As mc_failure_refused. Where graphs hold calls of the mesh, which start unseen, this rank waits for the others at
 * once. */
int mc_lead_refused(meshcoll_t *h, uint32_t number, bool persistent, int status);

/* To be called when a call was refused with `status`, which it returns with its text. The other ranks are told: they
 * fail while they wait in that call, unless calls are compared. */
static inline int mc_call_refused(meshcoll_t *h, const mc_call_t *call, int status)
{
    return h->hooks->refused ? h->hooks->refused(h, call, status)
                             : mc_lead_refused(h, call->number.own, call->is_persistent, status);
}

/* Gives a persistent request a lead of its own. */
int mc_lead_persistent(mc_persistent_t *r, const meshcoll_args_t *a);

/* Of a persistent request that goes: its barriers may still run. */
void mc_lead_drop(mc_persistent_t *r);
/* Is a running request the barrier of a lead, for which no run waits? */
bool mc_lead_is_unawaited(const meshcoll_request_t *r);

#endif
