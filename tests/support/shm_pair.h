/* Both ends of the shared-memory transport in one process, which reads its own memory. */
#ifndef MC_TEST_SHM_PAIR_H
#define MC_TEST_SHM_PAIR_H

#include "transport/shm/shm.h"
#include "transport/shm/shm_link.h"
#include "transport/shm/shm_memory.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, MOST = 1 << 20 };

typedef struct {
    mc_transport_t *t[RANKS];
    mc_peer_t *peer[RANKS]; /* to the other */
    mc_io_queue_t finished[RANKS];
} pair_t;

static inline pair_t open_with(mc_shm_access_t access, bool oversubscribed)
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

static inline pair_t open_oversubscribed(mc_shm_access_t access, bool oversubscribed)
{
    return open_with(access, oversubscribed);
}

static inline pair_t open_pair(mc_shm_access_t access)
{
    return open_oversubscribed(access, false);
}

static inline void close_pair(pair_t *p)
{
    for (int r = 0; r < RANKS; r++)
        p->t[r]->ops->close(p->t[r]);
}

static inline mc_io_t io_of(pair_t *p, int r)
{
    return (mc_io_t){.finished = &p->finished[r]};
}

static inline void progress(pair_t *p, int turns)
{
    for (int i = 0; i < turns; i++)
        for (int r = 0; r < RANKS; r++)
            p->t[r]->ops->progress(p->t[r]);
}

/* Both ends' queues until `sent` and `received` are in them. */
static inline void finish(pair_t *p, int sent, int received)
{
    for (int turn = 0; turn < 4000 && (sent || received); turn++) {
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
static inline void move(pair_t *p, size_t n, uint32_t from, uint32_t to, moment_t posted)
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

static inline void move_sizes(pair_t *p)
{
    static const size_t bytes[] = {1,     104,   105,   4096,   4097, 8192,
                                   30000, 65535, 65536, 300001, MOST};
    static const uint32_t spans[] = {1, 2, 17, 64};
    for (size_t b = 0; b < MC_COUNT(bytes); b++)
        for (size_t f = 0; f < MC_COUNT(spans); f++)
            for (size_t t = 0; t < MC_COUNT(spans); t++)
                if (bytes[b] >= 4096 || spans[f] * spans[t] == 1)
                    for (moment_t posted = BEFORE; posted < MOMENTS; posted++)
                        move(p, bytes[b], spans[f], spans[t], posted);
}

/* The other end sends now. */
static inline void reverse(pair_t *p)
{
    *p = (pair_t){.t = {p->t[1], p->t[0]}, .peer = {p->peer[1], p->peer[0]}};
}

typedef struct {
    uint64_t sum;
    size_t bytes;
} summed_t;

static inline void sum_up(void *context, mc_io_t *io, const void *piece, size_t bytes)
{
    summed_t *const s = context;
    const uint32_t *const v = piece;
    (void)io;
    cr_assert_eq(bytes % sizeof *v, 0, "a piece ends within an element");
    for (size_t i = 0; i < bytes / sizeof *v; i++)
        s->sum += (s->bytes / sizeof *v + i + 1) * v[i];
    s->bytes += bytes;
}

#endif
