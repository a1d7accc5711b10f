/* Two and more ends of the shared-memory transport in one process, which reads its own memory. */
#include "support/shm_pair.h"

#include <poll.h>

static void move_all(mc_shm_access_t access, bool oversubscribed)
{
    pair_t p = open_oversubscribed(access, oversubscribed);
    move_sizes(&p);
    reverse(&p);
    move(&p, MOST, 1, 1, BEFORE);
    close_pair(&p);
}

Test(shm, moves_messages_of_all_shapes_by_reading)
{
    move_all(MC_SHM_READ, false);
}

Test(shm, moves_messages_of_all_shapes_where_ranks_share_cores)
{
    move_all(MC_SHM_READ, true);
}

Test(shm, moves_messages_of_all_shapes_in_pieces)
{
    move_all(MC_SHM_COPY, false);
}

static void reduce_all(mc_shm_access_t access, bool oversubscribed)
{
    static const size_t bytes[] = {4, 104, 4000, 8192, 30000, 70000, MOST};
    pair_t p = open_oversubscribed(access, oversubscribed);
    for (size_t b = 0; b < MC_COUNT(bytes); b++)
        for (uint32_t spans = 1; spans < 40; spans += 19) {
            summed_t got = {0}, wanted = {0};
            mc_span_t out[64];
            unsigned char *const a = pattern(bytes[b], 3);
            uint32_t k = spans;
            for (uint32_t i = 0; i < k; i++) /* of whole elements */
                out[i] = (mc_span_t){a + bytes[b] / 4 * i / k * 4,
                                     (bytes[b] / 4 * (i + 1) / k - bytes[b] / 4 * i / k) * 4};
            const mc_message_t m = {1, out, k, bytes[b], 0, false, false};
            const mc_consumer_t consumer = {sum_up, &got};
            mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
            const int r = p.t[1]->ops->recv_reduce(p.peer[1], &m, &consumer, &received);
            const int s = p.t[0]->ops->send(p.peer[0], &m, &sent);
            finish(&p, s == MESHCOLL_IN_PROGRESS, r == MESHCOLL_IN_PROGRESS);
            sum_up(&wanted, NULL, a, bytes[b]);
            cr_assert_eq(got.bytes, bytes[b]);
            cr_assert_eq(got.sum, wanted.sum, "%zu bytes from %u spans", bytes[b], spans);
            free(a);
        }
    close_pair(&p);
}

Test(shm, reduces_from_the_peers_memory)
{
    reduce_all(MC_SHM_READ, true);
}

Test(shm, reduces_from_pieces)
{
    reduce_all(MC_SHM_COPY, false);
    reduce_all(MC_SHM_READ, false);
}

/* More than all slots, of all kinds, awaited in the reverse order. */
static void flood(mc_shm_access_t access)
{
    enum { MESSAGES = 100 };
    static const size_t bytes[] = {8, 20000, 3000, 40000};
    static unsigned char in[MESSAGES][40000];
    static mc_io_t sent[MESSAGES], received[MESSAGES];
    static mc_span_t out_span[MESSAGES], in_span[MESSAGES];
    pair_t p = open_pair(access);
    unsigned char *const out = pattern(40000 + MESSAGES, 1);
    int n_sent = 0, n_received = 0;
    for (int i = 0; i < MESSAGES; i++) {
        out_span[i] = (mc_span_t){out + i, bytes[i % 4]};
        const mc_message_t m = {(uint64_t)i, &out_span[i], 1, bytes[i % 4], 0, false, false};
        sent[i] = io_of(&p, 0);
        n_sent += p.t[0]->ops->send(p.peer[0], &m, &sent[i]) == MESHCOLL_IN_PROGRESS;
    }
    progress(&p, 20);
    for (int i = MESSAGES - 1; i >= 0; i--) {
        in_span[i] = (mc_span_t){in[i], bytes[i % 4]};
        const mc_message_t m = {(uint64_t)i, &in_span[i], 1, bytes[i % 4], 0, false, false};
        received[i] = io_of(&p, 1);
        n_received += p.t[1]->ops->recv(p.peer[1], &m, &received[i]) == MESHCOLL_IN_PROGRESS;
    }
    for (mc_io_t *io; (io = mc_io_pop(&p.finished[0])); n_sent--)
        cr_assert_eq(io->status, MESHCOLL_OK);
    finish(&p, n_sent, n_received);
    for (int i = 0; i < MESSAGES; i++)
        cr_assert_arr_eq(in[i], out + i, bytes[i % 4], "message %d", i);
    free(out);
    close_pair(&p);
}

Test(shm, keeps_what_comes_early_when_reading)
{
    flood(MC_SHM_READ);
}

Test(shm, keeps_what_comes_early_in_pieces)
{
    flood(MC_SHM_COPY);
}

/* `known_as`: numbers for messages, by rank. */
static void mismatch(size_t sent_bytes, const int32_t *known_as, const char *said)
{
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char *const a = pattern(MOST, 1), *const b = pattern(MOST, 2);
    const mc_span_t out = {a, sent_bytes}, in = {b, sent_bytes / 2};
    const mc_message_t send = {5, &out, 1, out.bytes, 0, false, false},
                       recv = {5, &in, 1, in.bytes, 0, false, false};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    p.t[1]->known_as = known_as;
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &recv, &received), MESHCOLL_IN_PROGRESS);
    cr_assert_geq(p.t[0]->ops->send(p.peer[0], &send, &sent), 0);
    progress(&p, 3);
    const mc_io_t *const io = mc_io_pop(&p.finished[1]);
    cr_assert_eq(io, &received);
    cr_assert_eq(io->status, MESHCOLL_ERR_MISMATCH);
    cr_assert(strstr(meshcoll_last_error(), said), "%s", meshcoll_last_error());
    free(a);
    free(b);
    close_pair(&p);
}

/* What nobody needs to ask for is with the transport at once: up to a size, or what is measured (mc_connections_limit). */
Test(shm, messages_are_copied_up_to_a_size)
{
    static const size_t limits[] = {MC_SHM_EAGER, MC_SHM_EAGER / 2, 4 * MC_SHM_EAGER};
    for (size_t i = 0; i < 2 * MC_COUNT(limits); i++) {
        const size_t limit = limits[i / 2], bytes = limit + i % 2;
        pair_t p = open_pair(MC_SHM_READ);
        cr_assert(i / 2 > 0 || p.t[0]->eager == limit);
        p.t[0]->eager = limit;
        unsigned char *const a = pattern(bytes, 1), *const b = pattern(bytes, 2);
        const mc_span_t out = {a, bytes}, in = {b, bytes};
        mc_message_t m = {5, &out, 1, bytes, 0, false, false};
        mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
        const int s = p.t[0]->ops->send(p.peer[0], &m, &sent);
        cr_expect_eq(s, bytes == limit ? MESHCOLL_OK : MESHCOLL_IN_PROGRESS, "%zu", bytes);
        m.span = &in;
        const int r = p.t[1]->ops->recv(p.peer[1], &m, &received);
        finish(&p, s == MESHCOLL_IN_PROGRESS, r == MESHCOLL_IN_PROGRESS);
        cr_expect_arr_eq(a, b, bytes);
        free(a);
        free(b);
        close_pair(&p);
    }
}

/* Behind a message that nobody could take comes one that is in order. */
Test(shm, drops_a_message_of_another_length)
{
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char *const a = pattern(20000, 1), *const b = pattern(20000, 2);
    const mc_span_t out = {a, 20000};
    mc_span_t in = {b, 10000};
    mc_message_t send = {5, &out, 1, 20000, 0, false, false},
                 recv = {5, &in, 1, 10000, 0, false, false};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &recv, &received), MESHCOLL_IN_PROGRESS);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &send, &sent), MESHCOLL_OK);
    progress(&p, 3);
    cr_assert_eq(mc_io_pop(&p.finished[1]), &received);
    cr_assert_eq(received.status, MESHCOLL_ERR_MISMATCH);
    send.tag = recv.tag = 6;
    in.bytes = recv.bytes = 20000;
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &send, &sent), MESHCOLL_OK);
    const int r = p.t[1]->ops->recv(p.peer[1], &recv, &received);
    finish(&p, 0, r == MESHCOLL_IN_PROGRESS);
    cr_assert_arr_eq(a, b, 20000);
    free(a);
    free(b);
    close_pair(&p);
}

Test(shm, tells_of_messages_of_another_length)
{
    mismatch(64, NULL, "from rank 4 ");
    mismatch(MOST, NULL, "from rank 4 ");
    mismatch(64, (const int32_t[]){0, 0, 0, 0, 17, 0}, "from rank 17 ");
}

Test(shm, a_sender_that_waits_helps_to_move_its_message)
{
    enum { BYTES = 8 << 20, TAIL = 1 << 18 };
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char *const from = pattern(BYTES, 7), *const to = calloc(BYTES, 1);
    const mc_span_t out = {from, BYTES}, in = {to, BYTES};
    mc_message_t m = {.tag = 5, .span = &out, .n_spans = 1, .bytes = BYTES};
    mc_io_t sending = io_of(&p, 0), receiving = io_of(&p, 1);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &m, &sending), MESHCOLL_IN_PROGRESS);
    m.span = &in;
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &m, &receiving), MESHCOLL_IN_PROGRESS);
    p.t[1]->ops->progress(p.t[1]);
    for (int i = 0; i < 3; i++)
        p.t[0]->ops->progress(p.t[0]);
    cr_expect_eq(memcmp(to + BYTES - TAIL, from + BYTES - TAIL, TAIL), 0);
    finish(&p, 1, 1);
    cr_expect_eq(memcmp(to, from, BYTES), 0);
    free(to);
    free(from);
    close_pair(&p);
}

Test(shm, wakes_who_sleeps)
{
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char byte = 1, got = 0;
    const mc_span_t out = {&byte, 1}, in = {&got, 1};
    const mc_message_t send = {5, &out, 1, 1, 0, false, false},
                       recv = {5, &in, 1, 1, 0, false, false};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    struct pollfd fd = {.fd = p.t[1]->fd, .events = POLLIN};
    for (int again = 0; again < 2; again++) {
        p.t[1]->ops->recv(p.peer[1], &recv, &received);
        cr_assert_eq(p.t[1]->ops->arm(p.t[1]), MESHCOLL_OK);
        cr_assert_eq(poll(&fd, 1, 0), 0);
        cr_assert_eq(p.t[0]->ops->send(p.peer[0], &send, &sent), MESHCOLL_OK);
        p.t[0]->ops->wake(p.t[0]);
        cr_assert_eq(poll(&fd, 1, 1000), 1);
        cr_assert_eq(p.t[1]->ops->arm(p.t[1]), MESHCOLL_IN_PROGRESS, "there is a message already");
        finish(&p, 0, 1);
    }
    close_pair(&p);
}

/* A sender that waits for room is woken when there is some. */
Test(shm, wakes_who_waits_for_room)
{
    enum { MESSAGES = 40 };
    static mc_io_t sent[MESSAGES], received[MESSAGES];
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char byte = 1, got = 0;
    const mc_span_t out = {&byte, 1}, in = {&got, 1};
    struct pollfd fd = {.fd = p.t[0]->fd, .events = POLLIN};
    int flying = 0, awaited = 0;
    for (int i = 0; i < MESSAGES; i++) {
        const mc_message_t m = {5, &out, 1, 1, 0, false, false};
        sent[i] = io_of(&p, 0);
        flying += p.t[0]->ops->send(p.peer[0], &m, &sent[i]) == MESHCOLL_IN_PROGRESS;
    }
    cr_assert_gt(flying, 0);
    cr_assert_eq(p.t[0]->ops->arm(p.t[0]), MESHCOLL_OK);
    for (int i = 0; i < MESSAGES; i++) {
        const mc_message_t m = {5, &in, 1, 1, 0, false, false};
        received[i] = io_of(&p, 1);
        awaited += p.t[1]->ops->recv(p.peer[1], &m, &received[i]) == MESHCOLL_IN_PROGRESS;
    }
    p.t[1]->ops->progress(p.t[1]);
    cr_assert_eq(poll(&fd, 1, 1000), 1);
    finish(&p, flying, awaited);
    close_pair(&p);
}
