/* Messages that their receiver asks for: which, when, and that small ones are not. */
#include "runtime/executor.h"
#include "runtime/hold.h"
#include "support/plans.h"

#include <stdlib.h>

enum { RANKS = 8, KIB = 1024 };

/* Takes all that is sent, and lets the test say what comes. */
typedef struct {
    mc_transport_t transport;
    mc_peer_t peer[RANKS];
    mc_io_t *credit; /* the one that is awaited */
    mc_io_t *message[RANKS];
    uint32_t n_asked, n_sent;
    int32_t asked[2 * RANKS];
} wire_t;

static int wire_send(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io)
{
    wire_t *const wire = (wire_t *)peer->transport;
    (void)io;
    if (message->tag & MC_TAG_CREDIT)
        wire->asked[wire->n_asked++] = peer->rank;
    else
        wire->n_sent++;
    return MESHCOLL_OK;
}

static int wire_recv(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io)
{
    wire_t *const wire = (wire_t *)peer->transport;
    *(message->tag & MC_TAG_CREDIT ? &wire->credit : &wire->message[peer->rank]) = io;
    return MESHCOLL_IN_PROGRESS;
}

static const mc_transport_ops_t wire_ops = {.send = wire_send, .recv = wire_recv};

typedef struct {
    plans_t plans;
    wire_t wire;
    mc_binding_t binding;
    mc_executor_t executor;
    char *in, *out, *scratch;
    uint64_t bytes_sent;
} rank_t;

/* One of eight in boxes of their own, of which 0 gathers blocks; `beside`: ranks that share its port. */
static void open_rank(rank_t *r, int32_t rank, size_t block, int32_t beside, bool streams)
{
    mc_peer_t *peer[RANKS];
    uint64_t *counter[RANKS];
    *r = (rank_t){.wire = {.transport = {.ops = &wire_ops, .fd = -1, .streams = streams}}};
    plans_of(&r->plans, &(case_t){"x=8", MESHCOLL_GATHER, 0, "gather:star(x)"});
    const mc_plan_t *const plan = r->plans.plan[rank];
    for (uint32_t i = 0; i < plan->n_peers; i++) {
        r->wire.peer[i] = (mc_peer_t){.transport = &r->wire.transport, .rank = plan->peer[i]};
        peer[i] = &r->wire.peer[i];
        counter[i] = &r->bytes_sent;
    }
    r->in = calloc(1, block);
    r->out = calloc(RANKS, block);
    const mc_wiring_t wiring = {
        .rank = rank, .beside = beside, .peer = peer, .bytes_sent = counter};
    const mc_operands_t operands = {
        .in = r->in, .out = r->out, .count = block, .datatype = MESHCOLL_INT8};
    cr_assert_eq(mc_binding_init(&r->binding, plan), MESHCOLL_OK);
    cr_assert_eq(mc_executor_init(&r->executor, plan, &wiring), MESHCOLL_OK);
    cr_assert_eq(mc_binding_measure(&r->binding, &operands), MESHCOLL_OK);
    cr_assert_eq(mc_executor_measure(&r->executor, &r->binding), 0);
    r->scratch = malloc(r->binding.scratch_bytes + 1);
    cr_assert_eq(mc_binding_place(&r->binding, r->scratch), MESHCOLL_OK);
    mc_executor_bind(&r->executor, NULL);
}

static void close_rank(rank_t *r)
{
    mc_executor_free(&r->executor);
    mc_binding_free(&r->binding);
    free(r->in);
    free(r->out);
    free(r->scratch);
    plans_free(&r->plans);
}

static int start(rank_t *r)
{
    r->wire.n_asked = r->wire.n_sent = 0;
    cr_assert_eq(mc_executor_start(&r->executor, 0), MESHCOLL_OK);
    return mc_executor_advance(&r->executor);
}

static int come(rank_t *r, mc_io_t *io)
{
    mc_io_finish(io, MESHCOLL_OK);
    return mc_executor_advance(&r->executor);
}

/* Of blocks of 32 KiB four may be on their way, each one that comes makes room for one: also where one
 * overtakes another, and again at the next start. */
Test(credit, the_root_asks_for_what_there_is_room_for)
{
    static rank_t r;
    open_rank(&r, 0, 32 * KIB, 1, true);
    for (int again = 0; again < 2; again++) {
        cr_expect_eq(start(&r), MESHCOLL_IN_PROGRESS);
        cr_expect_eq(r.wire.n_asked, 4);
        come(&r, r.wire.message[2]);
        cr_expect_eq(r.wire.n_asked, 5);
        come(&r, r.wire.message[1]);
        come(&r, r.wire.message[3]);
        cr_expect_eq(r.wire.n_asked, 7);
        for (int32_t from = 4; from < RANKS - 1; from++)
            cr_expect_eq(come(&r, r.wire.message[from]), MESHCOLL_IN_PROGRESS);
        cr_expect_eq(come(&r, r.wire.message[RANKS - 1]), MESHCOLL_OK);
        cr_expect_eq(r.wire.n_asked, 7);
        unsigned seen = 0;
        for (int32_t i = 0; i < RANKS - 1; i++)
            seen |= 1u << r.wire.asked[i];
        cr_expect_eq(seen, (1u << RANKS) - 2);
    }
    close_rank(&r);
}

/* One at least, however large, and however many share the port. */
Test(credit, one_is_always_asked_for)
{
    static rank_t r;
    open_rank(&r, 0, 256 * KIB, 64, true);
    start(&r);
    for (int32_t from = 1; from < RANKS; from++) {
        cr_expect_eq(r.wire.n_asked, (uint32_t)from);
        come(&r, r.wire.message[from]);
    }
    close_rank(&r);
}

Test(credit, ranks_that_share_a_port_share_what_may_come)
{
    static rank_t r;
    open_rank(&r, 0, 32 * KIB, MC_HOLD_PORT / (64 * KIB), true);
    start(&r);
    cr_expect_eq(r.wire.n_asked, 2);
    close_rank(&r);
}

Test(credit, a_sender_waits_until_it_is_asked)
{
    static rank_t r;
    open_rank(&r, 3, 32 * KIB, 1, true);
    for (int again = 0; again < 2; again++) {
        cr_expect_eq(start(&r), MESHCOLL_IN_PROGRESS);
        cr_expect_eq(r.wire.n_sent, 0);
        cr_expect_eq(come(&r, r.wire.credit), MESHCOLL_OK);
        cr_expect_eq(r.wire.n_sent, 1);
    }
    close_rank(&r);
}

static void expect_sent_at_once(size_t block, bool streams)
{
    static rank_t r;
    open_rank(&r, 3, block, 1, streams);
    cr_expect_eq(start(&r), MESHCOLL_OK);
    cr_expect_eq(r.wire.n_sent, 1);
    close_rank(&r);
    open_rank(&r, 0, block, 1, streams);
    start(&r);
    cr_expect_eq(r.wire.n_asked, 0);
    close_rank(&r);
}

/* All seven may send these at once. */
Test(credit, small_messages_go_unasked)
{
    expect_sent_at_once(16 * KIB, true);
}

/* Where a send waits for its receiver, that is enough. */
Test(credit, only_what_streams_is_asked_for)
{
    expect_sent_at_once(32 * KIB, false);
}
