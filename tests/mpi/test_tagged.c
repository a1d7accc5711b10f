/* Tagged messages: every way that a size takes, order, any source, more than a window, truncation,
 * messages to oneself, and collectives in between. */
#include "runtime/message/transfer.h"
#include "support/mpi/shuffled.h"

#include <meshcoll/mpi.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 100, MOST = 1 << 21 };

static int rank, size;
static meshcoll_t *mesh;
static MPI_Comm comm;

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s; last error: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static char *room(size_t bytes)
{
    char *const at = calloc(1, bytes + 1);
    check(at, "memory");
    return at;
}

/* Byte i of a message: of its sender, receiver, tag and number. */
static char byte_of(int from, int to, int tag, int number, size_t i)
{
    return (char)(from * 31 + to * 17 + tag * 13 + number * 7 + (int)(i % 251));
}

static void fill(char *at, size_t n, int from, int to, int tag, int number)
{
    for (size_t i = 0; i < n; i++)
        at[i] = byte_of(from, to, tag, number, i);
}

static void expect(const char *at, size_t n, int from, int to, int tag, int number)
{
    for (size_t i = 0; i < n; i++)
        check(at[i] == byte_of(from, to, tag, number, i), "other bytes than were sent");
}

static meshcoll_request_t *send_begin(const char *at, size_t n, int peer, int tag)
{
    meshcoll_request_t *r = NULL;
    check(meshcoll_send_begin(mesh, at, n, MESHCOLL_UINT8, peer, tag, &r) == 0, "send_begin");
    return r;
}

static meshcoll_request_t *recv_begin(char *at, size_t n, int peer, int tag,
                                      meshcoll_received_t *received)
{
    meshcoll_request_t *r = NULL;
    check(meshcoll_recv_begin(mesh, at, n, MESHCOLL_UINT8, peer, tag, received, &r) == 0,
          "recv_begin");
    return r;
}

static void finish(meshcoll_request_t *r)
{
    check(meshcoll_wait(r) == MESHCOLL_OK, "wait");
}

static const size_t sizes[] = {
    0, 1, MC_MESSAGE_INLINE, MC_MESSAGE_INLINE + 1, 4096, 8192, MC_MESSAGE_EAGER + 1, 100000, MOST};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

/* Around a ring, to every distance, which is to itself, too; receives first or sends first. */
static void test_sizes(void)
{
    char *const out = room(MOST), *const in = room(MOST);
    for (int far = 0; far < size; far++)
        for (int k = 0; k < 2 * N_SIZES; k++) {
            const size_t n = sizes[k / 2];
            const int to = (rank + far) % size, from = (rank + size - far) % size;
            meshcoll_received_t got = {0};
            meshcoll_request_t *request[2];
            fill(out, n, rank, to, k, 0);
            memset(in, 0x5a, MOST);
            if (k % 2) {
                request[0] = recv_begin(in, n, from, k, &got);
                request[1] = send_begin(out, n, to, k);
            } else {
                request[1] = send_begin(out, n, to, k);
                request[0] = recv_begin(in, MOST, from, k, &got);
            }
            check(meshcoll_waitall(2, request) == MESHCOLL_OK, "waitall");
            check(got.source == from && got.tag == k && got.count == n && got.bytes == n,
                  "another message than was sent");
            expect(in, n, from, rank, k, 0);
            check(n == MOST || in[n] == 0x5a, "written behind the message");
        }
    free(in);
    free(out);
}

static size_t size_of(int number)
{
    return sizes[number * 5 % (N_SIZES - 1)] + (size_t)number;
}

/* Far more than a window with one tag, of all sizes, half of them expected: none overtakes. */
static void test_order(void)
{
    char *out[MANY], *in[MANY];
    meshcoll_request_t *request[2 * MANY];
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < MANY; i++) {
        out[i] = room(size_of(i));
        in[i] = room(size_of(i));
        fill(out[i], size_of(i), rank, to, 3, i);
    }
    for (int i = 0; i < MANY / 2; i++)
        request[i] = recv_begin(in[i], size_of(i), from, 3, NULL);
    for (int i = 0; i < MANY; i++)
        request[MANY + i] = send_begin(out[i], size_of(i), to, 3);
    for (int i = MANY / 2; i < MANY; i++)
        request[i] = recv_begin(in[i], size_of(i), from, i % 2 ? MESHCOLL_ANY_TAG : 3, NULL);
    check(meshcoll_waitall(2 * MANY, request) == MESHCOLL_OK, "waitall");
    for (int i = 0; i < MANY; i++) {
        expect(in[i], size_of(i), from, rank, 3, i);
        free(in[i]);
        free(out[i]);
    }
}

/* The last tag first: what the receiver waits for is behind the window. */
static void test_backwards(void)
{
    char *const out = room((size_t)MANY * 200), *const in = room(200);
    meshcoll_request_t *request[MANY];
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < MANY; i++) {
        fill(out + i * 200, 200, rank, to, i, 0);
        request[i] = send_begin(out + i * 200, 200, to, i);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        meshcoll_received_t got;
        check(meshcoll_recv(mesh, in, 200, MESHCOLL_UINT8, i % 2 ? from : MESHCOLL_ANY_SOURCE, i,
                            &got) == MESHCOLL_OK,
              "recv");
        check(got.source == from && got.tag == i, "another message");
        expect(in, 200, from, rank, i, 0);
    }
    check(meshcoll_waitall(MANY, request) == MESHCOLL_OK, "waitall");
    free(in);
    free(out);
}

/* All to rank 0, from any source and with any tag; those of one rank come in order. */
static void test_any_source(void)
{
    char *const out = room(size_of(MANY) + MOST), *const in = room(size_of(MANY) + MOST);
    if (rank == 0) {
        int *const next = calloc((size_t)size, sizeof *next);
        for (int i = 0; i < (size - 1) * MANY; i++) {
            meshcoll_received_t got;
            check(meshcoll_recv(mesh, in, MOST, MESHCOLL_UINT8, MESHCOLL_ANY_SOURCE,
                                MESHCOLL_ANY_TAG, &got) == MESHCOLL_OK,
                  "recv from any");
            const int number = next[got.source]++;
            check(got.tag == number && got.bytes == size_of(number), "out of order");
            expect(in, got.bytes, got.source, 0, got.tag, number);
        }
        free(next);
    }
    for (int i = 0; rank > 0 && i < MANY; i++) {
        fill(out, size_of(i), rank, 0, i, i);
        check(meshcoll_send(mesh, out, size_of(i), MESHCOLL_UINT8, 0, i) == MESHCOLL_OK, "send");
    }
    free(in);
    free(out);
}

/* A message that is too long is an error of its receive alone. */
static void test_truncation(void)
{
    char *const out = room(MOST), *const in = room(MOST);
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int k = 1; k < N_SIZES; k++)
        for (int early = 0; early < 2; early++)
            for (int none = 0; none < 2; none++) {
                const size_t n = sizes[k], fits = none ? 0 : n - 1;
                meshcoll_received_t got = {0};
                meshcoll_request_t *send = NULL, *recv = NULL;
                fill(out, n, rank, to, 5, k);
                memset(in, 0x5a, n);
                if (early)
                    recv = recv_begin(in, fits, from, 5, &got);
                send = send_begin(out, n, to, 5);
                check(meshcoll_barrier(mesh) == MESHCOLL_OK, "barrier");
                if (!early)
                    recv = recv_begin(in, fits, from, 5, &got);
                check(meshcoll_wait(recv) == MESHCOLL_ERR_TRUNCATED, "a truncated receive");
                check(strstr(meshcoll_last_error(), "longer than its buffer"), "its text");
                check(got.bytes == n && got.source == from && got.tag == 5, "what was truncated");
                expect(in, fits, from, rank, 5, k);
                check(in[fits] == 0x5a, "written behind the buffer");
                finish(send);
            }
    free(in);
    free(out);
}

/* Messages that wait while collectives run, and collectives that wait while messages do. */
static void test_with_collectives(void)
{
    enum { ROUNDS = 20, COUNT = 3000 };
    int32_t *const x = calloc(COUNT, sizeof *x), *const y = calloc(COUNT, sizeof *y);
    char *const out = room(MOST), *const in = room(MOST);
    check(x && y, "memory");
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = sizes[round % N_SIZES];
        const int to = (rank + round) % size, from = (rank + size * ROUNDS - round) % size;
        meshcoll_request_t *request[3];
        for (int i = 0; i < COUNT; i++)
            x[i] = rank + i + round;
        fill(out, n, rank, to, round, round);
        request[0] = send_begin(out, n, to, round);
        check(meshcoll_iallreduce(mesh, x, y, COUNT, MESHCOLL_INT32, MESHCOLL_SUM, &request[1]) ==
                  MESHCOLL_OK,
              "iallreduce");
        check(meshcoll_barrier(mesh) == MESHCOLL_OK, "barrier");
        request[2] = recv_begin(in, n, from, round, NULL);
        check(meshcoll_waitall(3, request) == MESHCOLL_OK, "waitall");
        expect(in, n, from, rank, round, round);
        for (int i = 0; i < COUNT; i++)
            check(y[i] == size * (i + round) + size * (size - 1) / 2, "a wrong sum");
    }
    free(in);
    free(out);
    free(y);
    free(x);
}

/* A receiver that is not there is sent a window at most; the rest waits at the sender. */
static void test_window(void)
{
    enum { EACH = MC_MESSAGE_EAGER, N = 20 * MC_MESSAGE_WINDOW };
    char *const at = room((size_t)N * EACH);
    static meshcoll_request_t *request[N];
    int done = 0, go = 0;
    if (rank == 0) {
        for (int i = 0; i < N; i++) {
            fill(at + (size_t)i * EACH, EACH, 0, 1, 9, i);
            request[i] = send_begin(at + (size_t)i * EACH, EACH, 1, 9);
        }
        for (int turn = 0; turn < 200; turn++) {
            int index;
            if (meshcoll_testany(N, request, &index) == MESHCOLL_OK)
                done++;
            usleep(500);
        }
        check(done <= MC_MESSAGE_WINDOW, "more than a window was sent ahead");
        MPI_Send(&go, 1, MPI_INT, 1, 0, comm);
        check(meshcoll_waitall(N, request) == MESHCOLL_OK, "waitall");
    } else if (rank == 1) {
        MPI_Recv(&go, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) {
            check(meshcoll_recv(mesh, at, EACH, MESHCOLL_UINT8, 0, 9, NULL) == MESHCOLL_OK, "recv");
            expect(at, EACH, 0, 1, 9, i);
        }
    }
    free(at);
}

/* Blocking calls to and fro, from a cold connection on. */
static void test_to_and_fro(void)
{
    int64_t x = rank;
    const int peer = rank ^ 1;
    for (int i = 0; i < 200 && peer < size; i++) {
        if (rank % 2 == 0)
            check(meshcoll_send(mesh, &x, 1, MESHCOLL_INT64, peer, 1) == MESHCOLL_OK, "send");
        check(meshcoll_recv(mesh, &x, 1, MESHCOLL_INT64, peer, 1, NULL) == MESHCOLL_OK, "recv");
        x++;
        if (rank % 2)
            check(meshcoll_send(mesh, &x, 1, MESHCOLL_INT64, peer, 1) == MESHCOLL_OK, "send");
    }
}

/* On a part of the mesh, with the same tags as on the whole at the same time. */
static void test_split(const char *dims)
{
    meshcoll_t *part, *const whole = mesh;
    int64_t in[2] = {-1, -1};
    const int64_t out[2] = {rank, 100 + rank};
    meshcoll_request_t *r[4];
    meshcoll_received_t got[2];
    check(meshcoll_split(whole, dims, &part) == MESHCOLL_OK, "split");
    const int n = meshcoll_size(part), me = meshcoll_rank(part);
    meshcoll_t *const on[2] = {whole, part};
    const int to[2] = {(rank + 1) % size, (me + 1) % n};
    for (int k = 0; k < 2; k++) {
        check(meshcoll_send_begin(on[k], &out[k], 1, MESHCOLL_INT64, to[k], 1, &r[k]) == 0, "send");
        check(meshcoll_recv_begin(on[k], &in[k], 1, MESHCOLL_INT64, MESHCOLL_ANY_SOURCE, 1, &got[k],
                                  &r[2 + k]) == 0,
              "receive");
    }
    check(meshcoll_waitall(4, r) == MESHCOLL_OK, "waitall");
    check(got[0].source == (rank + size - 1) % size && in[0] == got[0].source, "of the whole");
    check(got[1].source == (me + n - 1) % n && in[1] >= 100, "of the part");
    meshcoll_destroy(part);
}

static void test_refusals(void)
{
    int64_t x = 0;
    meshcoll_request_t *r;
    const int bad = MESHCOLL_ERR_INVALID_ARG;
    check(meshcoll_send(NULL, &x, 1, MESHCOLL_INT64, 0, 1) == bad, "no mesh");
    check(meshcoll_send(mesh, &x, 1, MESHCOLL_INT64, size, 1) == bad, "no such rank");
    check(meshcoll_send(mesh, &x, 1, MESHCOLL_INT64, MESHCOLL_ANY_SOURCE, 1) == bad, "to any");
    check(meshcoll_send(mesh, &x, 1, MESHCOLL_INT64, 0, MESHCOLL_ANY_TAG) == bad, "any tag");
    check(meshcoll_recv(mesh, NULL, 1, MESHCOLL_INT64, 0, 1, NULL) == bad, "no buffer");
    check(meshcoll_recv(mesh, &x, SIZE_MAX, MESHCOLL_INT64, 0, 1, NULL) == bad, "too many");
    check(meshcoll_recv(mesh, &x, 1, MESHCOLL_DATATYPES, 0, 1, NULL) == bad, "no datatype");
    check(meshcoll_recv_begin(mesh, &x, 1, MESHCOLL_INT64, 0, -2, NULL, &r) == bad, "no tag");
    check(meshcoll_recv_begin(mesh, &x, 1, MESHCOLL_INT64, 0, 1, NULL, NULL) == bad, "no place");
}

/* Receives from any source would take the next test's messages. */
static void run(void (*test)(void))
{
    test();
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, "barrier");
}

/* usage: test_tagged [MESH [DIMS [BOXES NODES STEP]]]: DIMS to split by; with BOXES the ranks are
 * shuffled (support/mpi/shuffled.h) */
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const meshcoll_params_t params = {.size = sizeof params, .mesh = argc > 1 ? argv[1] : NULL};
    if (argc > 5) {
        const mc_shuffle_t shuffle = {atoi(argv[3]), atoi(argv[4]), atoi(argv[5])};
        comm = mc_shuffled_world(&shuffle);
        check(mc_shuffled_create(comm, &shuffle, &params, &mesh) == 0 && mesh->order.comm_rank,
              "creating shuffled boxes");
    } else {
        comm = MPI_COMM_WORLD;
        check(meshcoll_create(comm, &params, &mesh) == MESHCOLL_OK, "create");
    }
    rank = meshcoll_rank(mesh);
    size = meshcoll_size(mesh);
    test_refusals();
    run(test_to_and_fro);
    run(test_sizes);
    if (size > 1) {
        run(test_order);
        run(test_backwards);
        run(test_any_source);
        run(test_truncation);
        run(test_window);
    }
    run(test_with_collectives);
    if (argc > 2)
        test_split(argv[2]);
    /* receives that nothing matches, of which nobody will wait for one */
    char left[2][8];
    meshcoll_request_t *const unmatched = recv_begin(left[0], 8, MESHCOLL_ANY_SOURCE, 77, NULL);
    meshcoll_free(recv_begin(left[1], 8, rank, 78, NULL));
    meshcoll_destroy(mesh);
    check(meshcoll_wait(unmatched) == MESHCOLL_ERR_INVALID_ARG, "a receive behind destroy");
    if (comm != MPI_COMM_WORLD)
        MPI_Comm_free(&comm);
    if (rank == 0)
        printf("test_tagged: all messages are right\n");
    MPI_Finalize();
    return 0;
}
