/* Sends that are held for a message of another: which, until when, and that nobody waits for ever. */
#include "plan/match.h"
#include "runtime/hold.h"
#include "support/plans.h"
#include "support/strategies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Program order ----------------------------------------------------------------------------------- */

/* Can all ranks run their steps strictly one after another, where sends do not wait? */
static bool runs_in_order(const plans_t *p)
{
    mc_match_t match;
    const mc_world_t world = world_of(p);
    cr_assert_eq(mc_match_create(&world, &match), MESHCOLL_OK, "%s", meshcoll_last_error());
    uint32_t *const at = calloc((size_t)p->n, sizeof *at);
    uint32_t done = 0, before;
    do {
        before = done;
        for (int32_t r = 0; r < p->n; r++)
            for (; at[r] < p->plan[r]->n_steps; at[r]++, done++) {
                const uint32_t send = match.partner[match.first[r] + at[r]];
                if (mc_op_receives((mc_op_t)p->plan[r]->step[at[r]].op) &&
                    mc_match_index(&match, send) >= at[match.rank[send]])
                    break;
            }
    } while (done > before);
    const bool all = done == match.n_steps;
    free(at);
    mc_match_free(&match);
    return all;
}

static void check_order(const char *mesh, meshcoll_collective_t collective, const char *text)
{
    static plans_t p;
    char strategy[2048];
    for (int segments = 1; segments <= 6; segments += 5) {
        if (segments > 1 && strstr(text, "segments="))
            continue;
        snprintf(strategy, sizeof strategy, "%s%s", text, segments > 1 ? " segments=6" : "");
        plans_of(&p, &(case_t){mesh, collective, mc_moves[collective].rooted ? 1 : 0, strategy});
        cr_expect(runs_in_order(&p), "%s on %s", strategy, mesh);
        plans_free(&p);
    }
}

Test(hold, every_program_order_runs_to_the_end)
{
    static const char *const meshes[] = {"gpu=7", "box=3,gpu=4", "box=4,gpu=4", "x=2,y=3,z=2",
                                         "box=4+3+2"};
    for (size_t i = 0; i < MC_COUNT(meshes); i++)
        for (int k = 0; k < MESHCOLL_COLLECTIVES; k++) {
            mc_mesh_t mesh;
            mc_sample_t sample;
            cr_assert_eq(mc_mesh_parse(meshes[i], &mesh), MESHCOLL_OK);
            cr_assert_eq(mc_sample_open((meshcoll_collective_t)k, &mesh, 150, &sample), 0);
            for (int s = 0; s < sample.n; s++)
                check_order(meshes[i], (meshcoll_collective_t)k, sample.text[s]);
            mc_sample_close(&sample);
        }
}

/* Which wait, and for how long ------------------------------------------------------------------- */

enum { RANKS = 8, KIB = 1024 };

/* Takes all that is sent, and lets the test say what comes. */
typedef struct {
    mc_transport_t transport;
    mc_peer_t peer[RANKS];
    mc_io_t *awaited[RANKS]; /* the last one posted, by peer */
    uint32_t n_sent;
    int32_t sent_to[RANKS];
} wire_t;

static int wire_send(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io)
{
    wire_t *const wire = (wire_t *)peer->transport;
    (void)message, (void)io;
    wire->sent_to[wire->n_sent++] = peer->rank;
    return MESHCOLL_OK;
}

static int wire_recv(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io)
{
    (void)message;
    ((wire_t *)peer->transport)->awaited[peer->rank] = io;
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

static size_t bind(rank_t *r, size_t block, bool in_place)
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

/* Rank 0's exchange of blocks with seven others: to 1, from 7, to 2, from 6, … */
static void open_beside(rank_t *r, size_t block, bool streams, int32_t beside)
{
    mc_peer_t *peer[RANKS];
    uint64_t *counter[RANKS];
    *r = (rank_t){.wire = {.transport = {.ops = &wire_ops, .fd = -1, .streams = streams}}};
    plans_of(&r->plans, &(case_t){"x=8", MESHCOLL_ALLTOALL, 0, "alltoall:pairwise(x)"});
    const mc_plan_t *const plan = r->plans.plan[0];
    for (uint32_t i = 0; i < plan->n_peers; i++) {
        r->wire.peer[i] = (mc_peer_t){.transport = &r->wire.transport, .rank = plan->peer[i]};
        peer[i] = &r->wire.peer[i];
        counter[i] = &r->bytes_sent;
    }
    r->in = calloc(RANKS, block);
    r->out = calloc(RANKS, block);
    cr_assert_eq(mc_binding_init(&r->binding, plan), MESHCOLL_OK);
    const mc_wiring_t wiring = {.beside = beside, .peer = peer, .bytes_sent = counter};
    cr_assert_eq(mc_executor_init(&r->executor, plan, &wiring), MESHCOLL_OK);
    cr_assert_eq(bind(r, block, false), 0);
}

static void open_rank(rank_t *r, size_t block, bool streams)
{
    open_beside(r, block, streams, 1);
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

static int come(rank_t *r, int32_t from)
{
    mc_io_finish(r->wire.awaited[from], MESHCOLL_OK);
    return mc_executor_advance(&r->executor);
}

static void start(rank_t *r)
{
    r->wire.n_sent = 0;
    cr_assert_eq(mc_executor_start(&r->executor, 0), MESHCOLL_OK);
    mc_executor_advance(&r->executor);
}

/* 128 KiB are sent ahead: two blocks, so three sends go at once. Each block that comes frees one more,
 * also where one overtakes another. */
Test(hold, sends_wait_for_what_comes)
{
    static const int32_t sent_to[] = {1, 2, 3, 5, 4, 6, 7};
    static rank_t r;
    open_rank(&r, 64 * KIB, true);
    for (int again = 0; again < 2; again++) {
        start(&r);
        cr_expect_eq(r.wire.n_sent, 3);
        come(&r, 6);
        cr_expect_eq(r.wire.n_sent, 4);
        come(&r, 7);
        cr_expect_eq(r.wire.n_sent, 5);
        for (int32_t from = 5; from > 1; from--)
            cr_expect_eq(come(&r, from), MESHCOLL_IN_PROGRESS);
        cr_expect_eq(r.wire.n_sent, 7);
        cr_expect_eq(come(&r, 1), MESHCOLL_OK);
        for (int32_t i = 0; i < RANKS - 1; i++)
            cr_expect_eq(r.wire.sent_to[i], sent_to[i]);
    }
    close_rank(&r);
}

/* So many that each may send 64 KiB ahead: one block, so two sends go at once. */
Test(hold, ranks_that_share_a_port_share_what_goes_ahead)
{
    static rank_t r;
    open_beside(&r, 64 * KIB, true, MC_HOLD_PORT / (64 * KIB));
    start(&r);
    cr_expect_eq(r.wire.n_sent, 2);
    come(&r, 7);
    cr_expect_eq(r.wire.n_sent, 3);
    close_rank(&r);
}

static void expect_all_at_once(size_t block, bool streams)
{
    static rank_t r;
    open_rank(&r, block, streams);
    start(&r);
    cr_expect_eq(r.wire.n_sent, 7);
    close_rank(&r);
}

Test(hold, small_messages_go_at_once)
{
    expect_all_at_once(16 * KIB, true);
}

/* Other sizes of the same plan hold other sends: what was held before is not. */
Test(hold, a_new_binding_begins_anew)
{
    static rank_t r;
    open_rank(&r, 64 * KIB, true);
    bind(&r, 4 * KIB, true);
    start(&r);
    cr_expect_eq(r.wire.n_sent, 7);
    for (int32_t from = 1; from < RANKS; from++)
        come(&r, from);
    bind(&r, 0, true);
    start(&r);
    cr_expect_eq(mc_executor_advance(&r.executor), MESHCOLL_OK);
    bind(&r, 64 * KIB, true);
    start(&r);
    cr_expect_eq(r.wire.n_sent, 3);
    close_rank(&r);
}

/* Where a send waits for its receiver, that is enough. */
Test(hold, only_what_streams_is_held)
{
    expect_all_at_once(64 * KIB, false);
}
