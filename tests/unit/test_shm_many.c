/* Many ranks on one machine: what they hold of shared memory grows with the pairs that talk, and channels of few
 * slots and pages carry messages of every size, both ways at once. All ends are in one process. */
#include "transport/shm/shm_memory.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RANKS = 128, BYTES = 4096, LIMIT = 100 << 20, FOR_RANK = 64 << 10 };

typedef struct {
    int32_t n; /* ranks of the machine */
    mc_transport_t *t[RANKS];
    mc_peer_t *peer[RANKS][RANKS];
    mc_io_queue_t finished;
} machine_t;

static machine_t *open_machine(int32_t n, mc_shm_access_t access)
{
    machine_t *const m = calloc(1, sizeof *m);
    cr_assert(m);
    m->n = n;
    for (int32_t r = 0; r < n; r++) {
        const mc_shm_params_t params = {
            .dim = "gpu", .n = n, .rank = r, .access = access, .oversubscribed = true};
        cr_assert_eq(mc_shm_create(&params, &m->t[r]), MESHCOLL_OK, "%s", meshcoll_last_error());
    }
    return m;
}

static void connect(machine_t *m, int32_t from, int32_t to)
{
    cr_assert_eq(m->t[from]->ops->connect(m->t[from], to, m->t[to]->address, &m->peer[from][to]),
                 MESHCOLL_OK, "%s", meshcoll_last_error());
}

static void close_machine(machine_t *m)
{
    for (int32_t r = 0; r < m->n; r++)
        m->t[r]->ops->close(m->t[r]);
    free(m);
}

/* What the kernel has allocated of all segments. */
static size_t held(const machine_t *m)
{
    size_t bytes = 0;
    for (int32_t r = 0; r < m->n; r++) {
        const mc_shm_address_t *const address = m->t[r]->address;
        struct stat s;
        cr_assert_eq(fstat(address->file.fd, &s), 0);
        bytes += (size_t)s.st_blocks * 512;
    }
    return bytes;
}

static int progress(machine_t *m, int left, int turns)
{
    for (int turn = 0; left > 0 && turn < turns; turn++) {
        for (int32_t r = 0; r < m->n; r++)
            m->t[r]->ops->progress(m->t[r]);
        for (mc_io_t *io; (io = mc_io_pop(&m->finished)); left--)
            cr_assert_eq(io->status, MESHCOLL_OK, "%s", meshcoll_last_error());
    }
    return left;
}

static int check(int status)
{
    cr_assert_geq(status, 0, "%s", meshcoll_last_error());
    return status == MESHCOLL_IN_PROGRESS;
}

/* Each to each, all at once. */
static void alltoall(machine_t *m)
{
    static char out[BYTES], in[BYTES];
    mc_span_t from = {out, BYTES}, to = {in, BYTES};
    mc_io_t *const io = calloc((size_t)2 * RANKS * RANKS, sizeof *io), *next = io;
    cr_assert(io);
    int left = 0;
    for (int32_t a = 0; a < m->n; a++)
        for (int32_t b = 0; b < m->n; b++) {
            if (a == b)
                continue;
            next[0].finished = next[1].finished = &m->finished;
            const mc_message_t send = {
                .tag = (uint64_t)a + 1, .span = &from, .n_spans = 1, .bytes = BYTES};
            const mc_message_t recv = {
                .tag = (uint64_t)b + 1, .span = &to, .n_spans = 1, .bytes = BYTES};
            left += check(m->t[a]->ops->recv(m->peer[a][b], &recv, next++));
            left += check(m->t[a]->ops->send(m->peer[a][b], &send, next++));
        }
    cr_assert_eq(progress(m, left, 100), 0);
    free(io);
}

Test(shm_many, memory_grows_with_pairs_that_talk)
{
    machine_t *const m = open_machine(RANKS, MC_SHM_READ);
    cr_assert_leq(held(m), (size_t)RANKS * FOR_RANK);
    connect(m, 0, 1);
    connect(m, 1, 0);
    cr_assert_leq(held(m), (size_t)RANKS * FOR_RANK + (size_t)FOR_RANK);
    for (int32_t a = 0; a < RANKS; a++)
        for (int32_t b = 0; b < RANKS; b++)
            if (a != b && !m->peer[a][b])
                connect(m, a, b);
    for (int i = 0; i < 3; i++)
        alltoall(m);
    cr_assert_leq(held(m), (size_t)LIMIT, "%zu bytes are held", held(m));
    close_machine(m);
}

enum { MESSAGES = 60, MOST = 150000 };
typedef struct {
    unsigned char *out[2][MESSAGES], *in[2][MESSAGES];
    mc_span_t from[2][MESSAGES], to[2][MESSAGES];
    mc_io_t sent[2][MESSAGES], received[2][MESSAGES];
} traffic_t;

static size_t length(int i)
{
    static const size_t bytes[] = {8,     104,   105,   3000, 4096, 4097, 1,
                                   20000, 65536, 65537, 4096, 4096, MOST};
    return bytes[i % (int)MC_COUNT(bytes)];
}

static int post(machine_t *m, traffic_t *t, int r, int i, bool receives)
{
    const mc_message_t message = {.tag = (uint64_t)i + 1,
                                  .span = receives ? &t->to[r][i] : &t->from[r][i],
                                  .n_spans = 1,
                                  .bytes = length(i + r)};
    const mc_message_t other = {
        .tag = (uint64_t)i + 1, .span = &t->to[r][i], .n_spans = 1, .bytes = length(i + 1 - r)};
    return receives ? check(m->t[r]->ops->recv(m->peer[r][1 - r], &other, &t->received[r][i]))
                    : check(m->t[r]->ops->send(m->peer[r][1 - r], &message, &t->sent[r][i]));
}

static traffic_t *fill(machine_t *m)
{
    traffic_t *const t = calloc(1, sizeof *t);
    cr_assert(t);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < MESSAGES; i++) {
            t->out[r][i] = malloc(MOST);
            t->in[r][i] = calloc(MOST, 1);
            for (size_t k = 0; k < length(i + r); k++)
                t->out[r][i][k] = (unsigned char)(k * 7 + k / 251 + (size_t)(i + r));
            t->from[r][i] = (mc_span_t){t->out[r][i], length(i + r)};
            t->to[r][i] = (mc_span_t){t->in[r][i], length(i + 1 - r)};
            t->sent[r][i].finished = t->received[r][i].finished = &m->finished;
        }
    return t;
}

static void check_and_free(traffic_t *t)
{
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < MESSAGES; i++) {
            cr_assert_arr_eq(t->in[r][i], t->out[1 - r][i], length(i + 1 - r),
                             "message %d to rank %d", i, r);
            free(t->in[r][i]);
            free(t->out[1 - r][i]);
        }
    free(t);
}

/* All messages of both directions in flight at once; `early`: before their receives. */
static void flood(int32_t n, mc_shm_access_t access, bool early)
{
    machine_t *const m = open_machine(n, access);
    connect(m, 0, 1);
    connect(m, 1, 0);
    traffic_t *const t = fill(m);
    int left = 0;
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < MESSAGES; i++)
            for (int r = 0; r < 2; r++)
                left += post(m, t, r, i, (step == 0) != early);
        left = early && step == 0 ? progress(m, left, 3) : left;
    }
    cr_assert_eq(progress(m, left, 2000), 0, "%d ranks: messages stay", (int)n);
    check_and_free(t);
    close_machine(m);
}

Test(shm_many, channels_of_every_shape_carry_messages_of_every_size)
{
    static const int32_t ranks[] = {2, 32, 64, 90, 128};
    for (size_t i = 0; i < MC_COUNT(ranks); i++)
        for (int early = 0; early < 2; early++) {
            flood(ranks[i], MC_SHM_COPY, early);
            flood(ranks[i], MC_SHM_READ, early);
        }
}

/* A sender whose page is not free sleeps until it is: it has no work, and is woken. */
Test(shm_many, a_sender_without_a_page_has_no_work)
{
    machine_t *const m = open_machine(RANKS, MC_SHM_COPY);
    connect(m, 0, 1);
    connect(m, 1, 0);
    static char out[BYTES], in[BYTES];
    mc_span_t from = {out, BYTES}, to = {in, BYTES};
    mc_io_t io[4];
    const mc_message_t send = {.tag = 1, .span = &from, .n_spans = 1, .bytes = BYTES};
    const mc_message_t recv = {.tag = 1, .span = &to, .n_spans = 1, .bytes = BYTES};
    for (int i = 0; i < 4; i++)
        io[i] = (mc_io_t){.finished = &m->finished};
    cr_assert_eq(m->t[0]->ops->send(m->peer[0][1], &send, &io[0]), MESHCOLL_OK);
    cr_assert_eq(m->t[0]->ops->send(m->peer[0][1], &send, &io[1]), MESHCOLL_IN_PROGRESS);
    cr_assert_eq(m->t[0]->ops->arm(m->t[0]), MESHCOLL_OK, "it has nothing to do");
    cr_assert_eq(m->t[1]->ops->recv(m->peer[1][0], &recv, &io[2]), MESHCOLL_OK);
    cr_assert_eq(m->t[0]->ops->arm(m->t[0]), MESHCOLL_IN_PROGRESS, "the page is free");
    const int left = check(m->t[1]->ops->recv(m->peer[1][0], &recv, &io[3]));
    cr_assert_eq(progress(m, left + 1, 20), 0);
    close_machine(m);
}
