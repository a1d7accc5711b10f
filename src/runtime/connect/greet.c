#include "runtime/connect/greet.h"

#include "runtime/progress/failure.h"
#include "runtime/progress/wait.h"

#include <stdlib.h>
#include <string.h>

/* One greeting: a byte each way. */
typedef struct {
    mc_io_t sent, received;
    char out, in;
    mc_span_t from, to;
} greeting_t;

/* The pending messages of a round, and its greetings. */
typedef struct {
    mc_io_queue_t finished;
    uint32_t n_left;
    greeting_t greeting[];
} round_t;

static int count(round_t *round, int status)
{
    if (status == MESHCOLL_IN_PROGRESS)
        round->n_left++;
    return status < 0 ? status : MESHCOLL_OK;
}

static int greet_one(const meshcoll_t *h, mc_peer_t *peer, uint32_t seq, round_t *round,
                     greeting_t *g)
{
    const mc_transport_ops_t *const ops = peer->transport->ops;
    g->sent.finished = g->received.finished = &round->finished;
    g->from = (mc_span_t){&g->out, 1};
    g->to = (mc_span_t){&g->in, 1};
    const mc_message_t recv = {
        .tag = mc_tag(peer->rank, MC_TAG_GREETING, seq), .span = &g->to, .n_spans = 1, .bytes = 1};
    const mc_message_t send = {
        .tag = mc_tag(h->rank, MC_TAG_GREETING, seq), .span = &g->from, .n_spans = 1, .bytes = 1};
    const int status = count(round, ops->recv(peer, &recv, &g->received));
    return status ? status : count(round, ops->send(peer, &send, &g->sent));
}

static int finish_round(meshcoll_t *h, round_t *round)
{
    mc_waiting_t waiting = {.for_events = true};
    while (round->n_left > 0) {
        mc_io_t *const io = mc_io_pop(&round->finished);
        if (h->broken) /* by a concurrent request */
            return mc_failure_check(h);
        if (!io) {
            mc_wait_turn(h, &waiting);
            continue;
        }
        round->n_left--;
        if (io->status < 0)
            return io->status;
    }
    return MESHCOLL_OK;
}

/* After an error the rest of the round is not awaited: it may never arrive. */
static int run_round(meshcoll_t *h, mc_peer_t *const *peer, uint32_t n, uint32_t seq,
                     round_t *round)
{
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < n && !status; i++)
        if (!peer[i]->greeted && peer[i]->transport->greets)
            status = greet_one(h, peer[i], seq, round, &round->greeting[i]);
    return status ? status : finish_round(h, round);
}

/* A greeting may be complete while its last bytes are still in the transport's buffer. The
 * operation that follows need not use that connection, so nothing would push them out and the peer
 * would wait. */
static int flush_one(meshcoll_t *h, mc_transport_t *t)
{
    void *flush = NULL;
    mc_waiting_t waiting = {.for_events = true};
    int status = t->ops->flush(t, true, &flush);
    while (status == MESHCOLL_IN_PROGRESS) {
        status = t->ops->flushed(t, flush);
        if (status == MESHCOLL_IN_PROGRESS)
            mc_wait_turn(h, &waiting);
        if (status == MESHCOLL_IN_PROGRESS && h->broken) {
            t->ops->drop_flush(t, flush);
            return mc_failure_check(h);
        }
    }
    return status;
}

static int flush_greetings(meshcoll_t *h, mc_peer_t *const *peer, uint32_t n)
{
    int status = MESHCOLL_OK;
    mc_transport_t *last = NULL;
    for (uint32_t i = 0; i < n && !status; i++) {
        mc_transport_t *const t = peer[i]->transport;
        if (peer[i]->greeted || !t->greets || t == last || !t->ops->flush)
            continue;
        last = t;
        status = flush_one(h, t);
    }
    return status;
}

int mc_greet(meshcoll_t *h, mc_peer_t *const *peer, uint32_t n)
{
    round_t *const round = calloc(1, sizeof *round + (size_t)n * sizeof round->greeting[0]);
    if (!round)
        return mc_fail_memory("greeting new connections");
    /* the second round confirms to each side that the other has received its greeting */
    int status = run_round(h, peer, n, 0, round);
    if (!status)
        status = run_round(h, peer, n, 1, round);
    if (!status)
        status = flush_greetings(h, peer, n);
    for (uint32_t i = 0; i < n && !status; i++)
        peer[i]->greeted = true;
    /* transports still write to messages in flight: leak the round rather than free it */
    if (round->n_left == 0)
        free(round);
    return status;
}
