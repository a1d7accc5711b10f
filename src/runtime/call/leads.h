/* Counting calls into the leads of handle/lead.h, and their barriers. The caller holds the mesh's lock. */
#ifndef MC_CALL_LEADS_H
#define MC_CALL_LEADS_H

#include "runtime/call/numbers.h"

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
