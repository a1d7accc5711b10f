/* One rank of eight or fewer, its executor on a wire that takes all that is sent and lets the test say what comes. */
#ifndef MC_TESTS_SUPPORT_FAKE_WIRE_H
#define MC_TESTS_SUPPORT_FAKE_WIRE_H

#include "mesh/link/link.h"
#include "runtime/execute/executor.h"
#include "support/plans.h"

#include <stdlib.h>

enum { RANKS = 8, KIB = 1024 };

typedef struct {
    mc_transport_t transport;
    mc_peer_t peer[RANKS];
    mc_io_t *message[RANKS], *credit[RANKS]; /* the last one awaited, by peer */
    uint32_t n_sent, n_asked;                /* messages; credits */
    int32_t sent_to[2 * RANKS], asked[2 * RANKS];
} wire_t;

typedef struct {
    plans_t plans;
    wire_t wire;
    mc_binding_t binding;
    mc_executor_t executor;
    char *in, *out, *scratch;
    uint64_t bytes_sent;
} rank_t;

/* What is open; `concurrent`: ranks that share its port. */
typedef struct {
    meshcoll_collective_t collective;
    const char *strategy; /* on x=8, from or to rank 0 */
    int32_t rank;
    size_t block;
    int32_t concurrent;
    bool streams;
    size_t window; /* bytes; 0: MC_LINK_WINDOW */
} opened_t;

static inline int wire_send(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io)
{
    wire_t *const wire = (wire_t *)peer->transport;
    (void)io;
    if (message->tag & MC_TAG_CREDIT)
        wire->asked[wire->n_asked++] = peer->rank;
    else
        wire->sent_to[wire->n_sent++] = peer->rank;
    return MESHCOLL_OK;
}

static inline int wire_recv(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io)
{
    wire_t *const wire = (wire_t *)peer->transport;
    (message->tag & MC_TAG_CREDIT ? wire->credit : wire->message)[peer->rank] = io;
    return MESHCOLL_IN_PROGRESS;
}

static const mc_transport_ops_t wire_ops = {.send = wire_send, .recv = wire_recv};

/* Bytes of staging. */
static inline size_t rank_bind(rank_t *r, size_t block, bool in_place)
{
    const mc_operands_t operands = {
        .in = in_place ? r->out : r->in, .out = r->out, .count = block, .datatype = MESHCOLL_INT8};
    cr_assert_eq(mc_binding_measure(&r->binding, &operands), MESHCOLL_OK);
    const size_t staging = mc_executor_measure(&r->executor, &r->binding);
    free(r->scratch);
    r->scratch = malloc(r->binding.scratch_bytes + 1);
    cr_assert_eq(mc_binding_place(&r->binding, r->scratch), MESHCOLL_OK);
    mc_executor_bind(&r->executor, NULL);
    return staging;
}

static inline void rank_open_on(rank_t *r, const char *mesh, const opened_t *o)
{
    mc_peer_t *peer[RANKS];
    uint64_t *counter[RANKS];
    *r = (rank_t){.wire = {.transport = {.ops = &wire_ops, .fd = -1, .streams = o->streams}}};
    plans_of(&r->plans, &(case_t){mesh, o->collective, 0, o->strategy});
    const mc_plan_t *const plan = r->plans.plan[o->rank];
    for (uint32_t i = 0; i < plan->n_peers; i++) {
        r->wire.peer[i] = (mc_peer_t){.transport = &r->wire.transport, .rank = plan->peer[i]};
        peer[i] = &r->wire.peer[i];
        counter[i] = &r->bytes_sent;
    }
    r->in = calloc(RANKS, o->block);
    r->out = calloc(RANKS, o->block);
    const mc_wiring_t wiring = {.rank = o->rank,
                                .pacing.concurrent = o->concurrent,
                                .pacing.window = o->window ? o->window : MC_LINK_WINDOW,
                                .peer = peer,
                                .bytes_sent = counter};
    cr_assert_eq(mc_binding_init(&r->binding, plan), MESHCOLL_OK);
    cr_assert_eq(mc_executor_init(&r->executor, plan, &wiring), MESHCOLL_OK);
    cr_assert_eq(rank_bind(r, o->block, false), 0);
}

static inline void rank_open(rank_t *r, const opened_t *o)
{
    rank_open_on(r, "x=8", o);
}

static inline void rank_close(rank_t *r)
{
    mc_executor_free(&r->executor);
    mc_binding_free(&r->binding);
    free(r->in);
    free(r->out);
    free(r->scratch);
    plans_free(&r->plans);
}

static inline int rank_start(rank_t *r)
{
    r->wire.n_sent = r->wire.n_asked = 0;
    return mc_executor_start(&r->executor, 0);
}

static inline int come(rank_t *r, mc_io_t *io)
{
    mc_io_finish(io, MESHCOLL_OK);
    return mc_executor_advance(&r->executor);
}

#endif
