/* Calls that do not wait, persistent requests and groups over the real transports: results, the order of
 * completion, and that a group packs what the links say. */
#include <meshcoll/mpi.h>

#include "runtime/call/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AT_ONCE = 12, COUNT = 5000, PARTS = 40, ROUNDS = 6 };

static int rank, size;
static meshcoll_t *mesh;
static float in[AT_ONCE][COUNT], out[AT_ONCE][COUNT];

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s; last error: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Each of another length, collective and root; the calls are the same on all ranks. */
static size_t count_of(int i)
{
    return (size_t)(1 + i * i * 37 % COUNT);
}

static meshcoll_request_t *begin(int i)
{
    meshcoll_request_t *request = NULL;
    int status;
    for (int k = 0; k < COUNT; k++)
        in[i][k] = (float)(rank + i + k % 100);
    memset(out[i], 0, sizeof out[i]);
    if (i % 3 == 0)
        status =
            meshcoll_ibcast(mesh, in[i], out[i], count_of(i), MESHCOLL_FLOAT32, i % size, &request);
    else
        status = meshcoll_iallreduce(mesh, in[i], out[i], count_of(i), MESHCOLL_FLOAT32,
                                     MESHCOLL_SUM, &request);
    check(status == MESHCOLL_OK && request, "a call");
    return request;
}

static void expect(int i)
{
    for (int k = 0; k < (int)count_of(i); k++) {
        const float wanted = i % 3 == 0 ? (float)(i % size + i + k % 100)
                                        : (float)(size * (i + k % 100) + size * (size - 1) / 2);
        check(out[i][k] == wanted, "a wrong element");
    }
}

/* Each rank waits in an order of its own, and computes at another time. */
static void test_at_once(void)
{
    meshcoll_request_t *request[AT_ONCE];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            request[i] = begin(i);
        usleep((unsigned)((rank * 7 + round * 3) % 5) * 1000);
        if (round % 3 == 0) {
            check(meshcoll_waitall(AT_ONCE, request) == MESHCOLL_OK, "waitall");
        } else if (round % 3 == 1) {
            for (int left = AT_ONCE, at; left > 0; left--)
                check(meshcoll_waitany(AT_ONCE, request, &at) == MESHCOLL_OK && at >= 0 &&
                          !request[at],
                      "waitany");
        } else {
            for (int i = 0; i < AT_ONCE; i++)
                check(meshcoll_wait(request[(i * 5 + rank) % AT_ONCE]) == MESHCOLL_OK, "wait");
        }
        for (int i = 0; i < AT_ONCE; i++)
            expect(i);
    }
    meshcoll_request_t *barrier;
    check(meshcoll_ibarrier(mesh, &barrier) == MESHCOLL_OK, "ibarrier");
    check(meshcoll_wait(barrier) == MESHCOLL_OK, "wait for the barrier");
}

/* Values whose sums round differently in another order. */
static void fill(float *v, size_t n, int salt)
{
    for (size_t i = 0; i < n; i++)
        v[i] = 1.0F / (float)(3 + rank * 7 + salt + (int)i % 17) * (rank % 2 ? 1e4F : 1e-3F);
}

typedef struct {
    size_t count, at;
} part_t;

/* Bit for bit what one call over the vectors laid end to end gives; in as few operations as said. */
static void test_group(meshcoll_collective_t collective, const part_t *part, int n,
                       uint32_t operations)
{
    static float from[PARTS * COUNT], to[PARTS * COUNT], wanted[PARTS * COUNT];
    const int root = size - 1;
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += part[i].count;
    fill(from, total, (int)collective);
    memset(to, 0, sizeof to);
    memset(wanted, 0, sizeof wanted);
    meshcoll_args_t args = {.size = sizeof args,
                            .collective = collective,
                            .in = from,
                            .out = wanted,
                            .count = total,
                            .datatype = MESHCOLL_FLOAT32,
                            .root = root};
    meshcoll_request_t *request;
    check(meshcoll_begin(mesh, &args, &request) == MESHCOLL_OK &&
              meshcoll_wait(request) == MESHCOLL_OK,
          "the whole");
    const uint64_t before = mesh->cache.n_taken;
    check(meshcoll_group_begin(mesh) == MESHCOLL_OK, "group_begin");
    for (int i = 0; i < n; i++) {
        args.in = from + part[i].at;
        args.out = to + part[i].at;
        args.count = part[i].count;
        check(meshcoll_begin(mesh, &args, &request) == MESHCOLL_OK && !request, "a grouped call");
    }
    check(mesh->cache.n_taken == before, "nothing starts before the end");
    check(meshcoll_group_end(mesh) == MESHCOLL_OK, "group_end");
    check(operations == 0 || mesh->cache.n_taken - before == operations, "packed as the links say");
    const int has_out = collective != MESHCOLL_REDUCE || rank == root;
    if (operations == 1 && has_out)
        check(memcmp(to, wanted, total * sizeof *to) == 0, "other bits");
    for (size_t i = 0; i < total && has_out; i++)
        check(to[i] >= wanted[i] * 0.999F && to[i] <= wanted[i] * 1.001F, "another result");
}

static void test_whole_vectors(void)
{
    static const meshcoll_collective_t whole[] = {MESHCOLL_ALLREDUCE, MESHCOLL_BCAST,
                                                  MESHCOLL_REDUCE};
    part_t small[PARTS], mixed[PARTS];
    size_t at = 0, at_mixed = 0;
    for (int i = 0; i < PARTS; i++) {
        small[i] = (part_t){.count = 1 + (size_t)i % 5, .at = at};
        mixed[i] = (part_t){.count = i % 8 ? 3 : COUNT, .at = at_mixed};
        at += small[i].count;
        at_mixed += mixed[i].count;
    }
    for (int again = 0; again < 2; again++)
        for (size_t c = 0; c < MC_COUNT(whole); c++) {
            test_group(whole[c], small, PARTS, 1);
            test_group(whole[c], mixed, PARTS, 0);
        }
}

/* Blocks are packed rank by rank. */
static void test_blocks(void)
{
    enum { EACH = 3 };
    static int32_t mine[PARTS][EACH], all[PARTS][64 * EACH], back[PARTS][EACH],
        sums[PARTS][64 * EACH];
    check(size <= 64, "64 ranks at most");
    const uint64_t before = mesh->cache.n_taken;
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < EACH; k++)
            mine[i][k] = 1000 * rank + 10 * i + k;
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < size * EACH; k++)
            sums[i][k] = i + k;
    check(meshcoll_group_begin(mesh) == MESHCOLL_OK, "group_begin");
    for (int i = 0; i < PARTS; i++) {
        check(meshcoll_allgather(mesh, mine[i], all[i], EACH, MESHCOLL_INT32) == MESHCOLL_OK,
              "allgather");
        check(meshcoll_reduce_scatter(mesh, sums[i], back[i], EACH, MESHCOLL_INT32, MESHCOLL_SUM) ==
                  MESHCOLL_OK,
              "reduce_scatter");
    }
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, "barrier");
    check(meshcoll_group_end(mesh) == MESHCOLL_OK, "group_end");
    check(mesh->cache.n_taken - before == 3, "two packed and a barrier");
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < size * EACH; k++)
            check(all[i][k] == 1000 * (k / EACH) + 10 * i + k % EACH, "a wrong block");
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < EACH; k++)
            check(back[i][k] == size * (i + rank * EACH + k), "a wrong sum of a block");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const meshcoll_params_t params = {
        .size = sizeof params, .mesh = "box=2,gpu=2", .links = "generic"};
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "create");
    test_at_once();
    test_whole_vectors();
    test_blocks();
    if (rank == 0)
        printf("calls: ok\n");
    meshcoll_destroy(mesh);
    MPI_Finalize();
    return 0;
}
