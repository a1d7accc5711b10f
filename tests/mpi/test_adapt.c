/*
 * What calls learn never differs between ranks, and never shows in a result.
 *
 *     test_adapt mixed   1,000 calls of all ways, of which a rank begins most late: results, and the strategies of all
 *                        ranks, are compared. Ranks make one call in different ways.
 *     test_adapt clock   the same with a clock of one rank that runs fast, back, and in jumps
 *     test_adapt ahead   nonblocking calls of one rank far ahead of the others, who wait for a message behind them
 *     test_adapt freed   the same with sums of the user's own, that are freed while their calls run
 *     test_adapt tables  rank 0 far ahead with tables of counts, which it changes while its calls run
 *     test_adapt empty   calls of no elements, which some ranks begin and others make blocking, where looks are due
 *     test_adapt forced  nonblocking calls of one rank far ahead, which forces a strategy behind them
 *     test_adapt many    more kinds of calls than are learned of at once, in buffers that alternate on some ranks
 *     test_adapt bits    1,000 sums of the same numbers on each of two meshes have the same bits
 *     test_adapt own     persistent requests, started in another order on each rank, of which one is late, beside calls of
 *                        the same kinds: results, and the strategies of all ranks
 *     test_adapt own_clock the same with the clock of before
 *     test_adapt own_ahead one of which rank 0 completes runs far ahead of the others
 *     test_adapt own_learns as below, of a persistent request
 *     test_adapt off     where links are off, rank 0 says so in one line
 *     test_adapt learns  the candidates take turns, and then one is used
 */
#include <meshcoll/mpi.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 3000, CALLS = 1000, AHEAD = 150, SLOW = 3, FALSE_CLOCK = 2 };

static int rank, size;
static bool clock_is_false;

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s; last error: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* For the library too: a program's definition goes before libc's. */
int clock_gettime(clockid_t id, struct timespec *t)
{
    static unsigned n;
    const long status = syscall(SYS_clock_gettime, id, t);
    if (!clock_is_false)
        return (int)status;
    n++;
    const int64_t real = (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
    /* within an hour of the right time, so that limits of time stay what they are */
    const int64_t off = n % 7 == 0 ? (int64_t)(n % 97) * 30000000 : n % 5 == 0 ? -20000000 : 0;
    const int64_t wrong = real + off;
    t->tv_sec = wrong / 1000000000;
    t->tv_nsec = wrong % 1000000000;
    return (int)status;
}

/* A strategy that differs on any rank is an error. */
static void compare_text(const char *text, int call)
{
    uint64_t own = 0, both[2];
    for (const char *c = text; *c; c++)
        own = (own ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    const uint64_t mine[2] = {own, ~own};
    MPI_Allreduce(mine, both, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (both[0] != own || both[1] != ~own)
        fprintf(stderr, "rank %d, call %d: %s\n", rank, call, text);
    check(both[0] == own && both[1] == ~own, "another rank has another strategy");
}

static int32_t in[8 * COUNT], out[8 * COUNT];

static void fill(int salt)
{
    for (int i = 0; i < COUNT; i++)
        in[i] = rank * 1000 + i % 777 + salt;
    memset(out, -1, sizeof out);
}

static void expect(int at, int64_t value, int call, const char *what)
{
    if (out[at] != value)
        fprintf(stderr, "rank %d, call %d, element %d: %d, expected %lld\n", rank, call, at,
                out[at], (long long)value);
    check(out[at] == value, what);
}

static const meshcoll_collective_t kinds[] = {
    MESHCOLL_ALLREDUCE, MESHCOLL_BCAST, MESHCOLL_ALLGATHER, MESHCOLL_REDUCE, MESHCOLL_ALLTOALL};

/* Call number `i`: five kinds in turn, of two sizes. */
static meshcoll_args_t args_of(int i)
{
    const meshcoll_collective_t kind = kinds[i % 5];
    const size_t count = i / 5 % 2 ? COUNT / 8 : 3;
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = kind,
                             .in = in,
                             .out = out,
                             .count = count,
                             .datatype = MESHCOLL_INT32,
                             .op = MESHCOLL_SUM,
                             .root = kind == MESHCOLL_REDUCE ? 1 : 0};
}

static void check_result(const meshcoll_args_t *a, int salt, int call)
{
    const int last = (int)a->count - 1;
    const int64_t of_ranks = (int64_t)size * (size - 1) / 2 * 1000;
    const int value = last % 777 + salt;
    switch (a->collective) {
    case MESHCOLL_ALLREDUCE:
        expect(last, of_ranks + (int64_t)size * value, call, "allreduce");
        break;
    case MESHCOLL_BCAST:
        expect(last, value, call, "bcast");
        break;
    case MESHCOLL_ALLGATHER:
        for (int r = 0; r < size; r++)
            expect(r * (int)a->count + last, r * 1000 + value, call, "allgather");
        break;
    case MESHCOLL_REDUCE:
        if (rank == 1)
            expect(last, of_ranks + (int64_t)size * value, call, "reduce");
        break;
    default:
        for (int r = 0; r < size; r++)
            expect(r * (int)a->count + last, r * 1000 + (rank * (int)a->count + last) % 777 + salt,
                   call, "alltoall");
    }
}

static int run_blocking(meshcoll_t *mesh, const meshcoll_args_t *a)
{
    switch (a->collective) {
    case MESHCOLL_ALLREDUCE:
        return meshcoll_allreduce(mesh, a->in, a->out, a->count, a->datatype, a->op);
    case MESHCOLL_BCAST:
        return meshcoll_bcast(mesh, a->in, a->out, a->count, a->datatype, a->root);
    case MESHCOLL_ALLGATHER:
        return meshcoll_allgather(mesh, a->in, a->out, a->count, a->datatype);
    case MESHCOLL_REDUCE:
        return meshcoll_reduce(mesh, a->in, a->out, a->count, a->datatype, a->op, a->root);
    default:
        return meshcoll_alltoall(mesh, a->in, a->out, a->count, a->datatype);
    }
}

/* Blocking, nonblocking or in a group: by rank. */
static void make(meshcoll_t *mesh, const meshcoll_args_t *a, int way, int call)
{
    meshcoll_request_t *r = NULL;
    if (way == 0) {
        check(run_blocking(mesh, a) == MESHCOLL_OK, "a blocking call");
    } else if (way == 1) {
        check(meshcoll_begin(mesh, a, &r) == MESHCOLL_OK, "begin");
        if (call % 3 == 0)
            usleep(50);
        check(meshcoll_wait(r) == MESHCOLL_OK, "wait");
    } else {
        check(meshcoll_group_begin(mesh) == MESHCOLL_OK, "group");
        check(meshcoll_begin(mesh, a, &r) == MESHCOLL_OK, "begin in a group");
        check(meshcoll_group_end(mesh) == MESHCOLL_OK, "end of the group");
    }
}

static void run_mixed(meshcoll_t *mesh)
{
    for (int i = 0; i < CALLS; i++) {
        const meshcoll_args_t a = args_of(i);
        fill(i);
        if (rank == SLOW % size && i % 4)
            usleep(200);
        make(mesh, &a, (i / 10 + rank) % (i < CALLS / 2 ? 1 : 3), i);
        check_result(&a, i, i);
    }
    /* and of several nonblocking ones in flight, what each takes */
    for (int i = 0; i < 120; i++) {
        meshcoll_args_t a = args_of(0);
        meshcoll_request_t *r[3];
        for (int k = 0; k < 3; k++) {
            a.out = out + k * COUNT;
            check(meshcoll_begin(mesh, &a, &r[k]) == MESHCOLL_OK, "begin");
        }
        for (int k = 0; k < 3; k++)
            compare_text(meshcoll_request_strategy(r[k]), CALLS + i);
        for (int k = 0; k < 3; k++)
            check(meshcoll_wait(r[2 - k]) == MESHCOLL_OK, "wait");
    }
}

/* Rank 0 is ahead by more than a round of trials; the others begin when its message has come. */
static void run_ahead(meshcoll_t *mesh)
{
    enum { LENGTH = 16 };
    static meshcoll_request_t *request[AHEAD];
    static int32_t vector[AHEAD][LENGTH];
    int32_t go = 0;
    for (int i = 0; i < 40; i++) /* what comes next are trials */
        check(meshcoll_bcast(mesh, &i, &go, 1, MESHCOLL_INT32, 0) == MESHCOLL_OK, "bcast");
    for (int round = 0; round < 3; round++) {
        if (rank > 0)
            MPI_Recv(&go, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < AHEAD; i++) {
            vector[i][0] = vector[i][LENGTH - 1] = rank == 0 ? round * 1000 + i : -1;
            check(meshcoll_ibcast(mesh, vector[i], vector[i], LENGTH, MESHCOLL_INT32, 0,
                                  &request[i]) == MESHCOLL_OK,
                  "ibcast");
        }
        for (int r = 1; r < size && rank == 0; r++)
            MPI_Send(&round, 1, MPI_INT, r, 5, MPI_COMM_WORLD);
        for (int i = 0; i < AHEAD; i++) {
            check(meshcoll_wait(request[i]) == MESHCOLL_OK, "wait");
            check(vector[i][LENGTH - 1] == round * 1000 + i, "a vector of ibcast");
        }
    }
}

static void add(void *context, void *dst, const void *a, const void *b, size_t count,
                meshcoll_datatype_t datatype)
{
    (void)context, (void)datatype;
    for (size_t i = 0; i < count; i++)
        ((int32_t *)dst)[i] = ((const int32_t *)a)[i] + ((const int32_t *)b)[i];
}

/* Rank 0 begins sums, which the others make, blocking, after its message has come; `prepare` and `leave` run before and
 * after each. The first SAME are of one size, so that it learns; then each is of a new one. */
static void run_far_ahead(meshcoll_t *mesh, meshcoll_op_t (*prepare)(meshcoll_t *, int),
                          void (*leave)(meshcoll_op_t))
{
    enum { SAME = 130, LENGTH = AHEAD };
    static meshcoll_request_t *request[AHEAD];
    static int32_t vector[AHEAD][LENGTH];
    int32_t go = 0;
    for (int round = 0; round < 4; round++) {
        if (rank > 0)
            MPI_Recv(&go, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < AHEAD; i++) {
            const meshcoll_op_t op = prepare(mesh, i);
            const size_t count = i < SAME ? 1 : (size_t)i;
            vector[i][0] = vector[i][count - 1] = i + rank;
            const int status =
                rank > 0 ? meshcoll_allreduce(mesh, vector[i], vector[i], count, MESHCOLL_INT32, op)
                         : meshcoll_iallreduce(mesh, vector[i], vector[i], count, MESHCOLL_INT32,
                                               op, &request[i]);
            check(status == MESHCOLL_OK, "a sum begins");
            leave(op);
        }
        for (int r = 1; r < size && rank == 0; r++)
            MPI_Send(&round, 1, MPI_INT, r, 5, MPI_COMM_WORLD);
        for (int i = 0; i < AHEAD; i++) {
            check(rank > 0 || meshcoll_wait(request[i]) == MESHCOLL_OK, "wait");
            check(vector[i][i < SAME ? 0 : i - 1] == size * i + size * (size - 1) / 2, "a sum");
        }
    }
}

static meshcoll_op_t make_op(meshcoll_t *mesh, int call)
{
    meshcoll_op_t op;
    (void)mesh;
    check(meshcoll_op_create(add, call % 2, NULL, &op) == MESHCOLL_OK, "an operation");
    return op;
}

static void free_op(meshcoll_op_t op)
{
    check(meshcoll_op_free(op) == MESHCOLL_OK, "an operation is freed");
}

/* The last one is forced: those before may still be deferred. */
static meshcoll_op_t force_last(meshcoll_t *mesh, int call)
{
    const bool last = call == AHEAD - 1;
    if (call == 0 || last)
        check(meshcoll_set_strategy(mesh, MESHCOLL_ALLREDUCE,
                                    last ? "allreduce:ring(gpu)" : NULL) == MESHCOLL_OK,
              "a strategy is forced");
    return MESHCOLL_SUM;
}

static void leave_op(meshcoll_op_t op)
{
    (void)op;
}

/* Rank r has r + 1 elements. */
static void run_tables(meshcoll_t *mesh)
{
    enum { LENGTH = 40 };
    static meshcoll_request_t *request[AHEAD];
    static int32_t vector[AHEAD][LENGTH];
    size_t counts[8];
    int32_t go = 0, own[8];
    for (int round = 0; round < 3; round++) {
        if (rank > 0)
            MPI_Recv(&go, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 8; i++)
            own[i] = 100 * rank + i;
        for (int i = 0; i < AHEAD; i++) {
            for (int r = 0; r < size; r++)
                counts[r] = (size_t)r + 1;
            const int status =
                rank > 0 ? meshcoll_allgatherv(mesh, own, counts[rank], vector[i], counts, NULL,
                                               MESHCOLL_INT32)
                         : meshcoll_iallgatherv(mesh, own, counts[rank], vector[i], counts, NULL,
                                                MESHCOLL_INT32, &request[i]);
            check(status == MESHCOLL_OK, "an allgatherv");
            memset(counts, 0, sizeof counts);
        }
        for (int r = 1; r < size && rank == 0; r++)
            MPI_Send(&round, 1, MPI_INT, r, 5, MPI_COMM_WORLD);
        for (int i = 0; i < AHEAD; i++) {
            check(rank > 0 || meshcoll_wait(request[i]) == MESHCOLL_OK, "wait");
            for (int r = 0, at = 0; r < size; at += ++r)
                check(vector[i][at + r] == 101 * r, "a block of allgatherv");
        }
    }
}

/* Without elements every other time: blocking on even ranks, begun on odd ones. */
static void run_empty(meshcoll_t *mesh)
{
    for (int i = 0; i < 5 * CALLS; i++) {
        meshcoll_args_t a = args_of(0);
        a.count = i % 2 ? 3 : 0;
        fill(i);
        make(mesh, &a, a.count ? (i / 2 + rank) % 3 : rank % 2, i);
        if (a.count)
            check_result(&a, i, i);
    }
}

/* Every third call is of one kind, and then of another; the others are of 120, few of them often. */
static void run_many(meshcoll_t *mesh)
{
    for (int i = 0; i < 6 * CALLS; i++) {
        meshcoll_args_t a = args_of(0);
        a.count = i % 3 == 0 ? (i < 3 * CALLS ? 3 : 5) : 10 + (size_t)(i * 7 % (i % 2 ? 120 : 12));
        fill(i);
        if (rank % 2 && i % 5 > 1)
            a.out = out + i % 5 * COUNT;
        make(mesh, &a, i % 50 == 0 ? 1 : (i / 100 + rank) % 3, i);
        memmove(out, a.out, a.count * sizeof *out);
        check_result(&a, i, i);
        if (i % 10)
            continue;
        meshcoll_request_t *r;
        check(meshcoll_begin(mesh, &a, &r) == MESHCOLL_OK, "begin");
        compare_text(meshcoll_request_strategy(r), i);
        check(meshcoll_wait(r) == MESHCOLL_OK, "wait");
    }
}

static int run_once(meshcoll_request_t *own)
{
    const int status = meshcoll_start(own);
    return status ? status : meshcoll_wait(own);
}

/* Of every call and start, and of both meshes, which may learn different things. */
static void run_bits(void)
{
    static float from[8 * COUNT], to[8 * COUNT], first[8 * COUNT];
    static const size_t counts[] = {1, 100, COUNT};
    for (int i = 0; i < 8 * COUNT; i++)
        from[i] = 1.0F / (float)(3 + rank * 7 + i % 17) * (rank % 2 ? 1e4F : 1e-3F);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int m = 0; m < 2; m++) {
            meshcoll_t *mesh;
            meshcoll_request_t *own;
            check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "create");
            check(meshcoll_allreduce_init(mesh, from, to, counts[c], MESHCOLL_FLOAT32, MESHCOLL_SUM,
                                          &own) == MESHCOLL_OK,
                  "init");
            for (int i = 0; i < 4 * CALLS; i++) {
                const bool all = i % 2;
                const int status = i % 4 == 3 ? run_once(own)
                                   : all
                                       ? meshcoll_allreduce(mesh, from, to, counts[c],
                                                            MESHCOLL_FLOAT32, MESHCOLL_SUM)
                                       : meshcoll_reduce_scatter(mesh, from, to + COUNT, counts[c],
                                                                 MESHCOLL_FLOAT32, MESHCOLL_SUM);
                check(status == MESHCOLL_OK, "a sum");
                if (m == 0 && i == 1)
                    memcpy(first, to, sizeof to);
                if (m > 0 || i > 0)
                    check(memcmp(first, to, counts[c] * sizeof *to) == 0 &&
                              memcmp(first + COUNT, to + COUNT, counts[c] * sizeof *to) == 0,
                          "a sum has other bits than the first");
            }
            meshcoll_free(own);
            meshcoll_destroy(mesh);
        }
}

/* The start number k of round i: every tenth round starts all, in an order that differs between ranks; the others one
 * alone, as only then it is timed. */
enum { OWN = 10 };
static int own_of(int i, int k)
{
    return i % 10 ? (i / 10 + i) % OWN : (i / 10 + k * (rank % 2 ? 3 : 7)) % OWN;
}

static void run_own(meshcoll_t *mesh)
{
    meshcoll_request_t *request[OWN];
    static int32_t to[OWN][8 * COUNT];
    for (int k = 0; k < OWN; k++) {
        meshcoll_args_t a = args_of(k);
        a.out = to[k];
        check(meshcoll_init(mesh, &a, &request[k]) == MESHCOLL_OK, "init");
    }
    for (int i = 0; i < 2 * CALLS; i++) {
        const int n = i % 10 ? 1 : OWN;
        fill(i);
        if (rank == SLOW % size && i % 4)
            usleep(200);
        for (int k = 0; k < n; k++)
            check(meshcoll_start(request[own_of(i, k)]) == MESHCOLL_OK, "start");
        for (int k = 0; k < n; k++) {
            const int which = n > 1 ? k : own_of(i, 0);
            const meshcoll_args_t a = args_of(which);
            check(meshcoll_wait(request[which]) == MESHCOLL_OK, "wait");
            memcpy(out, to[which], sizeof out);
            check_result(&a, i, i);
            if (i % 5 == 0)
                compare_text(meshcoll_request_strategy(request[which]), i);
        }
        if (i % 2 == 0) {
            const meshcoll_args_t a = args_of(i);
            make(mesh, &a, (i / 10 + rank) % 2, i);
            check_result(&a, i, i);
        }
    }
    for (int k = 0; k < OWN; k++)
        meshcoll_free(request[k]);
}

/* The others begin when its message has come: at the end, or when it cannot go on. */
static void run_own_ahead(meshcoll_t *mesh)
{
    enum { LENGTH = 16, TESTS = 20000 };
    int32_t go = 0, vector[LENGTH] = {0};
    meshcoll_request_t *request;
    check(meshcoll_bcast_init(mesh, vector, vector, LENGTH, MESHCOLL_INT32, 0, &request) ==
              MESHCOLL_OK,
          "init");
    for (int round = 0; round < 20; round++) {
        bool told = rank > 0;
        if (rank > 0)
            MPI_Recv(&go, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i <= AHEAD; i++) {
            int status = i == AHEAD ? MESHCOLL_IN_PROGRESS : MESHCOLL_OK;
            if (i < AHEAD) {
                vector[0] = vector[LENGTH - 1] = rank == 0 ? round * 1000 + i : -1;
                check(meshcoll_start(request) == MESHCOLL_OK, "start");
                status = MESHCOLL_IN_PROGRESS;
                for (int t = 0; t < TESTS && !told && status == MESHCOLL_IN_PROGRESS; t++)
                    status = meshcoll_test(request);
            }
            for (int r = 1; r < size && !told && status == MESHCOLL_IN_PROGRESS; r++)
                MPI_Send(&round, 1, MPI_INT, r, 5, MPI_COMM_WORLD);
            told = told || status == MESHCOLL_IN_PROGRESS;
            if (i == AHEAD)
                continue;
            check(status == MESHCOLL_OK || meshcoll_wait(request) == MESHCOLL_OK, "wait");
            check(vector[LENGTH - 1] == round * 1000 + i, "a vector of bcast");
        }
    }
    compare_text(meshcoll_request_strategy(request), 0);
    meshcoll_free(request);
}

/* Which strategies calls took, in turn, or starts of `own`; returns how many. */
static int run_learns(meshcoll_t *mesh, meshcoll_request_t *own, int calls, char text[][512],
                      int most)
{
    int n = 0;
    for (int i = 0; i < calls; i++) {
        meshcoll_request_t *r = own;
        check((own ? meshcoll_start(own)
                   : meshcoll_iallreduce(mesh, in, out, COUNT, MESHCOLL_INT32, MESHCOLL_SUM, &r)) ==
                  MESHCOLL_OK,
              "iallreduce");
        const char *const taken = meshcoll_request_strategy(r);
        int k = 0;
        while (k < n && strcmp(text[k], taken))
            k++;
        check(k < most, "there are too many strategies");
        if (k == n)
            snprintf(text[n++], 512, "%s", taken);
        check(meshcoll_wait(r) == MESHCOLL_OK, "wait");
    }
    return n;
}

static void check_learns(meshcoll_t *mesh, meshcoll_request_t *own)
{
    static char text[8][512];
    check(run_learns(mesh, own, 50, text, 8) == 1, "the first calls take one strategy");
    const int tried = run_learns(mesh, own, 90, text, 8);
    check(tried > 1 && tried <= 6, "candidates take turns");
    check(run_learns(mesh, own, 300, text, 8) == 1, "then one is used");
    compare_text(text[0], 400);
    /* a look, and one again */
    check(run_learns(mesh, own, 2600, text, 8) > 1, "a later look tries another");
}

static void check_own_learns(meshcoll_t *mesh)
{
    meshcoll_request_t *own;
    check(meshcoll_allreduce_init(mesh, in, out, COUNT, MESHCOLL_INT32, MESHCOLL_SUM, &own) ==
              MESHCOLL_OK,
          "init");
    check_learns(mesh, own);
    meshcoll_free(own);
}

/* Of two kinds of calls. */
static void check_told(meshcoll_t *mesh)
{
    char said[4096] = "";
    FILE *const to = tmpfile();
    const int before = dup(STDERR_FILENO);
    check(to && before >= 0 && dup2(fileno(to), STDERR_FILENO) >= 0, "stderr goes to a file");
    for (int i = 0; i < 200; i++) {
        const meshcoll_args_t a = args_of(i % 2 ? 0 : 2);
        check(run_blocking(mesh, &a) == MESHCOLL_OK, "a call");
    }
    check(dup2(before, STDERR_FILENO) >= 0, "stderr is as before");
    rewind(to);
    const size_t n = fread(said, 1, sizeof said - 1, to);
    const char *const at = strstr(said, "its links predict");
    check(rank > 0 ? n == 0 : at && strchr(said, '\n') == said + n - 1, said);
    close(before);
    fclose(to);
}

int main(int argc, char **argv)
{
    const char *const what = argc > 1 ? argv[1] : "mixed";
    meshcoll_t *mesh = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(size <= 8, "on 8 ranks at most");
    if (strcmp(what, "bits") == 0) {
        run_bits();
        MPI_Finalize();
        return 0;
    }
    if (strcmp(what, "off") == 0)
        setenv("MESHCOLL_LINKS", "gpu=alpha:1s;beta:1GB/s", 1);
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "create");
    clock_is_false = strstr(what, "clock") && rank == FALSE_CLOCK % size;
    if (strcmp(what, "ahead") == 0)
        run_ahead(mesh);
    else if (strcmp(what, "freed") == 0)
        run_far_ahead(mesh, make_op, free_op);
    else if (strcmp(what, "forced") == 0)
        run_far_ahead(mesh, force_last, leave_op);
    else if (strcmp(what, "off") == 0)
        check_told(mesh);
    else if (strcmp(what, "many") == 0)
        run_many(mesh);
    else if (strcmp(what, "tables") == 0)
        run_tables(mesh);
    else if (strcmp(what, "empty") == 0)
        run_empty(mesh);
    else if (strcmp(what, "learns") == 0)
        check_learns(mesh, NULL);
    else if (strcmp(what, "own_learns") == 0)
        check_own_learns(mesh);
    else if (strcmp(what, "own_ahead") == 0)
        run_own_ahead(mesh);
    else if (strcmp(what, "own") == 0 || strcmp(what, "own_clock") == 0)
        run_own(mesh);
    else
        run_mixed(mesh);
    clock_is_false = false;
    meshcoll_destroy(mesh);
    MPI_Finalize();
    return 0;
}
