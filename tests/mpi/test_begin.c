/*
 * A begin never waits for another rank. Three ranks, a mesh for each pair of them, and calls made
 * in an order that goes round in a circle: rank r first calls on the mesh it shares with its right
 * neighbour. Each begin is the first call of its mesh. Where one waited for its peer, all three
 * would wait in their first one.
 *
 *     test_begin [begin|init|group|threads]
 *
 * On 4 ranks: two meshes of all of them, in an order that differs by rank, and alltoallvs whose
 * counts are exchanged first.
 */
#include <meshcoll/mpi.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, COUNT = 20000, SQUARE = 4, BLOCK = 700 };

static int rank;

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s; last error: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* One of this rank's two meshes. */
typedef struct {
    meshcoll_t *mesh;
    MPI_Comm comm;
    int32_t in[2 * COUNT], out[2 * COUNT];
    meshcoll_request_t *request;
    int status;
} pair_t;

/* right: shared with rank + 1; left: with rank - 1 */
static pair_t right, left;

static void open_pair(pair_t *p, int other)
{
    check(meshcoll_create(p->comm, NULL, &p->mesh) == MESHCOLL_OK, "create");
    for (int i = 0; i < 2 * COUNT; i++)
        p->in[i] = (rank + 1) * (i % 1000 + 1) + (rank + other) * 7;
}

/* Pairs {0,1}, {1,2}, {2,0}, one after the other. */
static void open_pairs(void)
{
    for (int low = 0; low < RANKS; low++) {
        const int high = (low + 1) % RANKS, member = rank == low || rank == high;
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, rank, &comm);
        if (!member)
            continue;
        pair_t *const p = rank == low ? &right : &left;
        p->comm = comm;
        open_pair(p, rank == low ? high : low);
    }
}

static void close_pairs(void)
{
    for (int low = 0; low < RANKS; low++) {
        pair_t *const p = rank == low ? &right : &left;
        if (rank != low && rank != (low + 1) % RANKS)
            continue;
        meshcoll_destroy(p->mesh);
        MPI_Comm_free(&p->comm);
    }
}

static void expect_sum(const pair_t *p, int other)
{
    for (int i = 0; i < COUNT; i++)
        check(p->out[i] == (rank + other + 2) * (i % 1000 + 1) + 2 * (rank + other) * 7,
              "a wrong sum");
}

static void expect_sums(void)
{
    expect_sum(&right, (rank + 1) % RANKS);
    expect_sum(&left, (rank + RANKS - 1) % RANKS);
}

static meshcoll_args_t sum_of(pair_t *p)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = MESHCOLL_ALLREDUCE,
                             .in = p->in,
                             .out = p->out,
                             .count = COUNT,
                             .datatype = MESHCOLL_INT32};
}

static void begin(pair_t *p)
{
    const meshcoll_args_t a = sum_of(p);
    check(meshcoll_begin(p->mesh, &a, &p->request) == MESHCOLL_OK, "begin");
}

static void run_begin(void)
{
    begin(&right);
    begin(&left);
    /* in the order of the begins too: a wait moves what runs on the other mesh */
    check(meshcoll_wait(right.request) == MESHCOLL_OK, "wait");
    check(meshcoll_wait(left.request) == MESHCOLL_OK, "wait");
    expect_sums();
}

static void init(pair_t *p)
{
    const meshcoll_args_t a = sum_of(p);
    check(meshcoll_init(p->mesh, &a, &p->request) == MESHCOLL_OK, "init");
}

static void run_init(void)
{
    meshcoll_request_t *unused;
    init(&right);
    init(&left);
    for (int round = 0; round < 3; round++) {
        check(meshcoll_start(right.request) == MESHCOLL_OK, "start");
        check(meshcoll_start(left.request) == MESHCOLL_OK, "start");
        meshcoll_request_t *both[] = {right.request, left.request};
        check(meshcoll_waitall(2, both) == MESHCOLL_OK, "waitall");
        expect_sums();
    }
    meshcoll_free(right.request);
    meshcoll_free(left.request);
    /* made, not started: closed with the mesh */
    check(meshcoll_bcast_init(left.mesh, left.in, left.out, 5, MESHCOLL_INT32, 0, &unused) ==
              MESHCOLL_OK,
          "bcast_init");
    meshcoll_free(unused);
    check(meshcoll_bcast_init(right.mesh, right.in, right.out, 5, MESHCOLL_INT32, 0, &unused) ==
              MESHCOLL_OK,
          "bcast_init");
    meshcoll_free(unused);
}

/* The end of a group waits, but for its own calls: those of the other mesh move on meanwhile. */
static void run_group(void)
{
    begin(&left);
    check(meshcoll_group_begin(right.mesh) == MESHCOLL_OK, "group_begin");
    const meshcoll_args_t a = sum_of(&right);
    meshcoll_request_t *none;
    check(meshcoll_begin(right.mesh, &a, &none) == MESHCOLL_OK && !none, "begin in a group");
    check(meshcoll_group_end(right.mesh) == MESHCOLL_OK, "group_end");
    check(meshcoll_wait(left.request) == MESHCOLL_OK, "wait");
    expect_sums();
}

/* Several threads, each with a mesh of its own. */
static void *run_one(void *argument)
{
    pair_t *const p = argument;
    begin(p);
    p->status = meshcoll_wait(p->request);
    return NULL;
}

static void run_threads(void)
{
    pthread_t thread;
    if (rank % 2) /* this thread first calls on its left mesh, where the neighbour is late */
        usleep(20 * 1000);
    check(pthread_create(&thread, NULL, run_one, &right) == 0, "a thread");
    run_one(&left);
    pthread_join(thread, NULL);
    check(right.status == MESHCOLL_OK && left.status == MESHCOLL_OK, "wait in two threads");
    expect_sums();
}

/* An alltoallv ------------------------------------------------------------------------------------ */

typedef struct {
    meshcoll_t *mesh;
    size_t in_counts[SQUARE], out_counts[SQUARE];
    int32_t in[SQUARE * BLOCK], out[SQUARE * BLOCK];
    meshcoll_request_t *request;
} exchange_t;

static size_t count_of(int from, int to)
{
    return (size_t)((from * 3 + to * 5) % 7) * 100;
}

static int32_t value_of(int from, int to, size_t i)
{
    return (int32_t)(from * 100000 + to * 10000 + (int)i);
}

static void open_exchange(exchange_t *x)
{
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "box=2,gpu=2"};
    size_t at = 0;
    check(meshcoll_create(MPI_COMM_WORLD, &params, &x->mesh) == MESHCOLL_OK, "create");
    check(meshcoll_set_strategy(x->mesh, MESHCOLL_ALLTOALL, "hierarchical") == MESHCOLL_OK,
          "set_strategy");
    for (int r = 0; r < SQUARE; r++) {
        x->in_counts[r] = count_of(rank, r);
        x->out_counts[r] = count_of(r, rank);
        for (size_t i = 0; i < x->in_counts[r]; i++)
            x->in[at++] = value_of(rank, r, i);
    }
}

static void expect_blocks(exchange_t *x)
{
    size_t at = 0;
    for (int r = 0; r < SQUARE; r++)
        for (size_t i = 0; i < count_of(r, rank); i++)
            check(x->out[at++] == value_of(r, rank, i), "a wrong element");
    memset(x->out, 0, sizeof x->out);
}

/* The caller's tables are its own again once the call has returned. */
static void begin_exchange(exchange_t *x, bool persistent)
{
    size_t in[SQUARE], out[SQUARE];
    memcpy(in, x->in_counts, sizeof in);
    memcpy(out, x->out_counts, sizeof out);
    const int status = persistent ? meshcoll_alltoallv_init(x->mesh, x->in, in, NULL, x->out, out,
                                                            NULL, MESHCOLL_INT32, &x->request)
                                  : meshcoll_ialltoallv(x->mesh, x->in, in, NULL, x->out, out, NULL,
                                                        MESHCOLL_INT32, &x->request);
    check(status == MESHCOLL_OK, "alltoallv");
    memset(in, 0x55, sizeof in);
    memset(out, 0x55, sizeof out);
}

static exchange_t exchange[2];

static void run_calls(int first)
{
    for (int round = 0; round < 3; round++) {
        begin_exchange(&exchange[first], false);
        begin_exchange(&exchange[1 - first], false);
        for (int i = 0; i < 2; i++) {
            check(meshcoll_wait(exchange[first ^ i].request) == MESHCOLL_OK, "wait");
            expect_blocks(&exchange[first ^ i]);
        }
    }
}

static void run_persistent(int first)
{
    begin_exchange(&exchange[first], true);
    begin_exchange(&exchange[1 - first], true);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++) {
            check(meshcoll_start(exchange[first ^ i].request) == MESHCOLL_OK, "start");
            check(meshcoll_start(exchange[1 - (first ^ i)].request) == MESHCOLL_OK, "start");
            for (int k = 0; k < 2; k++) {
                check(meshcoll_wait(exchange[k].request) == MESHCOLL_OK, "wait");
                expect_blocks(&exchange[k]);
            }
        }
    meshcoll_free(exchange[0].request);
    meshcoll_free(exchange[1].request);
    /* freed while the counts are exchanged */
    begin_exchange(&exchange[first], true);
    begin_exchange(&exchange[1 - first], true);
    meshcoll_free(exchange[0].request);
    meshcoll_free(exchange[1].request);
}

static void run_exchange(void)
{
    open_exchange(&exchange[0]);
    open_exchange(&exchange[1]);
    run_calls(rank % 2);
    run_persistent(rank % 2);
    meshcoll_destroy(exchange[0].mesh);
    meshcoll_destroy(exchange[1].mesh);
}

static void run_circle(const char *what)
{
    open_pairs();
    if (strcmp(what, "init") == 0)
        run_init();
    else if (strcmp(what, "group") == 0)
        run_group();
    else if (strcmp(what, "threads") == 0)
        run_threads();
    else
        run_begin();
    close_pairs();
}

int main(int argc, char **argv)
{
    const char *const what = argc > 1 ? argv[1] : "begin";
    int given, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(size == RANKS || size == SQUARE, "this test needs 3 ranks or 4");
    alarm(60);
    if (size == RANKS)
        run_circle(what);
    else
        run_exchange();
    MPI_Finalize();
    return 0;
}
