/* Two and more ends of the shared-memory transport in one process, which reads its own memory. */
#include "transport/shm/shm.h"
#include "transport/shm/shm_link.h"
#include "transport/shm/shm_memory.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

enum { RANKS = 2, MOST = 1 << 20 };

typedef struct {
    mc_transport_t *t[RANKS];
    mc_peer_t *peer[RANKS]; /* to the other */
    mc_io_queue_t finished[RANKS];
} pair_t;

static pair_t open_with(mc_shm_access_t access, bool oversubscribed)
{
    pair_t p = {0};
    for (int32_t r = 0; r < RANKS; r++) {
        const mc_shm_params_t params = {.dim = "gpu",
                                        .base = 4,
                                        .n = RANKS,
                                        .rank = 4 + r,
                                        .access = access,
                                        .oversubscribed = oversubscribed};
        cr_assert_eq(mc_shm_create(&params, &p.t[r]), MESHCOLL_OK, "%s", meshcoll_last_error());
    }
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(p.t[r]->ops->connect(p.t[r], 5 - r, p.t[1 - r]->address, &p.peer[r]),
                     MESHCOLL_OK, "%s", meshcoll_last_error());
    return p;
}

static pair_t open_oversubscribed(mc_shm_access_t access, bool oversubscribed)
{
    return open_with(access, oversubscribed);
}

static pair_t open_pair(mc_shm_access_t access)
{
    return open_oversubscribed(access, false);
}

static void close_pair(pair_t *p)
{
    for (int r = 0; r < RANKS; r++)
        p->t[r]->ops->close(p->t[r]);
}

static mc_io_t io_of(pair_t *p, int r)
{
    return (mc_io_t){.finished = &p->finished[r]};
}

static void progress(pair_t *p, int turns)
{
    for (int i = 0; i < turns; i++)
        for (int r = 0; r < RANKS; r++)
            p->t[r]->ops->progress(p->t[r]);
}

/* Both ends' queues until `sent` and `received` are in them. */
static void finish(pair_t *p, int sent, int received)
{
    for (int turn = 0; turn < 1000 && (sent || received); turn++) {
        progress(p, 1);
        for (mc_io_t *io; (io = mc_io_pop(&p->finished[0])); sent--)
            cr_assert_eq(io->status, MESHCOLL_OK, "%s", meshcoll_last_error());
        for (mc_io_t *io; (io = mc_io_pop(&p->finished[1])); received--)
            cr_assert_eq(io->status, MESHCOLL_OK, "%s", meshcoll_last_error());
    }
    cr_assert_eq(sent, 0);
    cr_assert_eq(received, 0);
}

static unsigned char *pattern(size_t n, unsigned salt)
{
    unsigned char *const at = malloc(n + 1);
    cr_assert(at);
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)(i * 31 + i / 251 + salt);
    return at;
}

/* Cuts n bytes at `at` into `k` spans of different lengths. */
static uint32_t cut(unsigned char *at, size_t n, uint32_t k, mc_span_t *span)
{
    size_t done = 0;
    for (uint32_t i = 0; i < k; i++) {
        const size_t part = i + 1 == k ? n - done : n / k / (1 + i % 3);
        span[i] = (mc_span_t){at + done, part};
        done += part;
    }
    return k;
}

/* When a receive is posted: before its message is sent, after that, or after the transport has seen it. */
typedef enum { BEFORE, AFTER, SEEN, MOMENTS } moment_t;

/* One message, from `from` spans to `to` spans. */
static void move(pair_t *p, size_t n, uint32_t from, uint32_t to, moment_t posted)
{
    mc_span_t out[64], in[64];
    unsigned char *const a = pattern(n, 7), *const b = pattern(n, 99);
    const mc_message_t send = {42, out, cut(a, n, from, out), n, 0, false, false};
    const mc_message_t recv = {42, in, cut(b, n, to, in), n, 0, false, false};
    mc_io_t sent = io_of(p, 0), received = io_of(p, 1);
    int r = MESHCOLL_IN_PROGRESS;
    if (posted == BEFORE)
        r = p->t[1]->ops->recv(p->peer[1], &recv, &received);
    const int s = p->t[0]->ops->send(p->peer[0], &send, &sent);
    if (posted == SEEN)
        progress(p, 3);
    if (posted != BEFORE)
        r = p->t[1]->ops->recv(p->peer[1], &recv, &received);
    cr_assert_geq(s, 0);
    cr_assert_geq(r, 0);
    finish(p, s == MESHCOLL_IN_PROGRESS, r == MESHCOLL_IN_PROGRESS);
    cr_assert_arr_eq(a, b, n, "%zu bytes, %u spans to %u", n, from, to);
    free(a);
    free(b);
}

static void move_all(mc_shm_access_t access, bool oversubscribed)
{
    static const size_t bytes[] = {1,     104,   105,   4096,   4097, 8192,
                                   30000, 65535, 65536, 300001, MOST};
    static const uint32_t spans[] = {1, 2, 17, 64};
    pair_t p = open_oversubscribed(access, oversubscribed);
    for (size_t b = 0; b < MC_COUNT(bytes); b++)
        for (size_t f = 0; f < MC_COUNT(spans); f++)
            for (size_t t = 0; t < MC_COUNT(spans); t++)
                if (bytes[b] >= 4096 || spans[f] * spans[t] == 1)
                    for (moment_t posted = BEFORE; posted < MOMENTS; posted++)
                        move(&p, bytes[b], spans[f], spans[t], posted);
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

typedef struct {
    uint64_t sum;
    size_t bytes;
} summed_t;

static void sum_up(void *context, mc_io_t *io, const void *piece, size_t bytes)
{
    summed_t *const s = context;
    const uint32_t *const v = piece;
    (void)io;
    cr_assert_eq(bytes % sizeof *v, 0, "a piece ends within an element");
    for (size_t i = 0; i < bytes / sizeof *v; i++)
        s->sum += (s->bytes / sizeof *v + i + 1) * v[i];
    s->bytes += bytes;
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

/* Pages of the sender's that are gone: the kernel reads up to them, and says no more than how far. */
Test(shm, tells_of_memory_that_cannot_be_read)
{
    enum { PAGE = 4096, PAGES = 20 }; /* what is shorter is copied */
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char *const to = pattern(PAGES * PAGE, 1);
    char *const from =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(from != MAP_FAILED && munmap(from + (PAGES - 1) * PAGE, PAGE) == 0);
    const mc_span_t out = {from, PAGES * PAGE};
    const mc_span_t in[] = {{to, PAGE}, {to + PAGE, (PAGES - 1) * PAGE}}; /* two: not shared */
    const mc_message_t send = {42, &out, 1, out.bytes, 0, false, false},
                       recv = {42, in, 2, out.bytes, 0, false, false};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &send, &sent), MESHCOLL_IN_PROGRESS);
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &recv, &received), MESHCOLL_IN_PROGRESS);
    progress(&p, 8);
    cr_assert_eq(mc_io_pop(&p.finished[1]), &received);
    cr_expect_eq(received.status, MESHCOLL_ERR_TRANSPORT);
    cr_expect_not_null(strstr(meshcoll_last_error(), "Bad address"), "%s", meshcoll_last_error());
    cr_expect_eq(mc_io_pop(&p.finished[0]), &sent, "the sender is told");
    close_pair(&p);
    munmap(from, (PAGES - 1) * PAGE);
    free(to);
}

/* What its sender has begun to write when a read fails must be written before the buffer is the caller's again. */
Test(shm, a_receive_that_fails_outlasts_its_senders_help)
{
    enum { PAGE = 4096, BYTES = 8 << 20, TURN = 1 << 20, HELP = 1 << 18 };
    pair_t p = open_pair(MC_SHM_READ);
    mc_shm_share_t *const share = &((mc_shm_link_t *)p.peer[0])->in->share;
    unsigned char *const to = pattern(BYTES, 1);
    char *const from =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(from != MAP_FAILED && munmap(from + TURN, PAGE) == 0);
    const mc_span_t out = {from, BYTES}, in = {to, BYTES};
    mc_message_t m = {.tag = 42, .span = &out, .n_spans = 1, .bytes = BYTES};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &m, &sent), MESHCOLL_IN_PROGRESS);
    m.span = &in;
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &m, &received), MESHCOLL_IN_PROGRESS);
    p.t[1]->ops->progress(p.t[1]); /* asks for help, and reads up to the hole */
    p.t[0]->ops->progress(p.t[0]);
    p.t[0]->ops->progress(p.t[0]);
    cr_assert_eq(atomic_fetch_sub(&share->given, HELP), HELP, "as though it were at it");
    progress(&p, 3);
    cr_expect_null(mc_io_pop(&p.finished[1]));
    atomic_fetch_add(&share->given, HELP);
    progress(&p, 3);
    cr_assert_eq(mc_io_pop(&p.finished[1]), &received);
    cr_expect_eq(received.status, MESHCOLL_ERR_TRANSPORT);
    cr_expect_not_null(strstr(meshcoll_last_error(), "rank 4"), "%s", meshcoll_last_error());
    cr_expect_eq(mc_io_pop(&p.finished[0]), &sent, "the sender is told");
    close_pair(&p);
    munmap(from, BYTES);
    free(to);
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

/* What a rank offered may be changed by its caller once it has failed, and is not read as though it were the message. */
Test(shm, an_offer_ends_with_its_senders_mesh)
{
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char *const a = pattern(MOST, 1), *const b = pattern(MOST, 2);
    const mc_span_t out = {a, MOST}, in = {b, MOST};
    mc_message_t m = {.tag = 42, .span = &out, .n_spans = 1, .bytes = MOST};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &m, &sent), MESHCOLL_IN_PROGRESS);
    p.t[0]->ops->abandon(p.t[0], "no memory for scratch");
    memset(a, 0x5a, MOST);
    m.span = &in;
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &m, &received), MESHCOLL_IN_PROGRESS);
    for (int i = 0; i < 8; i++)
        p.t[1]->ops->progress(p.t[1]);
    cr_assert_eq(mc_io_pop(&p.finished[1]), &received);
    cr_expect_eq(received.status, MESHCOLL_ERR_PEER);
    cr_expect_not_null(strstr(meshcoll_last_error(), "rank 4 failed: no memory for scratch"), "%s",
                       meshcoll_last_error());
    close_pair(&p);
    free(a);
    free(b);
}

Test(shm, who_waits_for_a_rank_that_failed_is_told)
{
    pair_t p = open_pair(MC_SHM_READ);
    char byte = 0;
    const mc_span_t in = {&byte, 1};
    const mc_message_t m = {.tag = 42, .span = &in, .n_spans = 1, .bytes = 1};
    mc_io_t received = io_of(&p, 1);
    p.t[0]->ops->abandon(p.t[0], "it was asked for too much");
    cr_expect_eq(p.t[1]->ops->check(p.t[1]), MESHCOLL_OK, "nobody waits");
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &m, &received), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(p.t[1]->ops->check(p.t[1]), MESHCOLL_ERR_PEER);
    cr_expect_not_null(strstr(meshcoll_last_error(), "rank 4 failed: it was asked for too much"),
                       "%s", meshcoll_last_error());
    close_pair(&p);
}

/* A caller's buffer is its own again when a call has failed, also where the sender was writing to it. */
Test(shm, a_sender_that_helps_writes_nothing_after_its_receivers_mesh_failed)
{
    enum { BYTES = 8 << 20 };
    pair_t p = open_pair(MC_SHM_READ);
    unsigned char *const a = pattern(BYTES, 1), *const b = pattern(BYTES, 2);
    const mc_span_t out = {a, BYTES}, in = {b, BYTES};
    mc_message_t m = {.tag = 42, .span = &out, .n_spans = 1, .bytes = BYTES};
    mc_io_t sent = io_of(&p, 0), received = io_of(&p, 1);
    cr_assert_eq(p.t[0]->ops->send(p.peer[0], &m, &sent), MESHCOLL_IN_PROGRESS);
    m.span = &in;
    cr_assert_eq(p.t[1]->ops->recv(p.peer[1], &m, &received), MESHCOLL_IN_PROGRESS);
    p.t[1]->ops->progress(p.t[1]); /* asks for help */
    p.t[0]->ops->progress(p.t[0]);
    p.t[0]->ops->progress(p.t[0]);
    cr_assert_eq(b[BYTES - 1], a[BYTES - 1], "it helps");
    cr_assert_neq(b[BYTES / 2], a[BYTES / 2]);
    p.t[1]->ops->abandon(p.t[1], "something");
    memset(b, 0x5a, BYTES);
    for (int i = 0; i < 64; i++)
        p.t[0]->ops->progress(p.t[0]);
    for (size_t i = 0; i < BYTES; i++)
        cr_assert_eq(b[i], 0x5a, "byte %zu was written", i);
    close_pair(&p);
    free(a);
    free(b);
}
