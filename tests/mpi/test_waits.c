/* Waits in an order of each rank's own, and ranks that disagree: nothing hangs, and errors say why. */
#include <meshcoll/mpi.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BIG = 1 << 20, SMALL = 16 };

static int rank, size;
static float *in, *out, *other;

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s; last error: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static meshcoll_t *create(void)
{
    meshcoll_t *mesh = NULL;
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "create");
    return mesh;
}

static meshcoll_request_t *request(meshcoll_t *mesh, meshcoll_collective_t collective, float *to,
                                   size_t count, const char *strategy)
{
    meshcoll_request_t *r = NULL;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = collective,
                                  .in = in,
                                  .out = to,
                                  .count = count,
                                  .datatype = MESHCOLL_FLOAT32,
                                  .strategy = strategy};
    check(meshcoll_init(mesh, &args, &r) == MESHCOLL_OK, "init");
    return r;
}

static void start(meshcoll_request_t *r)
{
    check(meshcoll_start(r) == MESHCOLL_OK, "start");
}

static void finish(meshcoll_request_t *r)
{
    check(meshcoll_wait(r) == MESHCOLL_OK, "wait");
}

/* Each rank waits for another of two handles first. */
static void test_two_handles(void)
{
    meshcoll_t *const a = create(), *const b = create();
    meshcoll_request_t *const x = request(a, MESHCOLL_ALLREDUCE, out, BIG, NULL);
    meshcoll_request_t *const y = request(b, MESHCOLL_ALLREDUCE, other, BIG, NULL);
    for (int again = 0; again < 3; again++) {
        start(x);
        start(y);
        finish(rank % 2 ? y : x);
        finish(rank % 2 ? x : y);
        check(out[BIG - 1] == (float)size && other[0] == (float)size, "sums");
    }
    meshcoll_free(x);
    meshcoll_free(y);
    meshcoll_destroy(b);
    meshcoll_destroy(a);
}

/* The small one is complete everywhere before anybody awaits the big one, which rank 0 has begun. */
static void test_unawaited(void)
{
    int token = 0;
    meshcoll_t *const mesh = create();
    meshcoll_request_t *const small =
        request(mesh, MESHCOLL_ALLREDUCE, out, SMALL, "flat-fullmesh");
    meshcoll_request_t *const big = request(mesh, MESHCOLL_BCAST, other, 4 * BIG, "flat-star");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        start(small);
        start(big);
        finish(small);
        for (int i = 1; i < size; i++)
            MPI_Send(&token, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
    } else {
        usleep(100 * 1000);
        start(small);
        finish(small);
        MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        start(big);
    }
    finish(big);
    check(out[SMALL - 1] == (float)size && other[4 * BIG - 1] == 1, "results");
    meshcoll_free(small);
    meshcoll_free(big);
    meshcoll_destroy(mesh);
}

/* By the digest of the call or, where counts have the same one, by the length. */
static bool tells(const char *bytes)
{
    return strstr(meshcoll_last_error(), "has made another call than") ||
           strstr(meshcoll_last_error(), bytes);
}

/* The ranks are connected already: where they connect they would compare the counts. */
static void test_counts_differ(size_t at_root, size_t elsewhere)
{
    char bytes[64];
    meshcoll_t *const mesh = create();
    snprintf(bytes, sizeof bytes, "%zu bytes arrived from rank 0 where %zu were", 4 * at_root,
             4 * elsewhere);
    check(meshcoll_set_strategy(mesh, MESHCOLL_BCAST, "flat-star") == MESHCOLL_OK, "strategy");
    check(meshcoll_bcast(mesh, in, out, 1, MESHCOLL_FLOAT32, 0) == MESHCOLL_OK, "connect");
    const int status =
        meshcoll_bcast(mesh, in, out, rank ? elsewhere : at_root, MESHCOLL_FLOAT32, 0);
    if (rank) {
        check(status == MESHCOLL_ERR_MISMATCH && tells(bytes), "other counts are seen");
        check(meshcoll_barrier(mesh) == MESHCOLL_ERR_MISMATCH &&
                  strstr(meshcoll_last_error(), "failed before") && tells(bytes),
              "a mesh that failed stays so");
    } else {
        check(status == MESHCOLL_OK || status == MESHCOLL_ERR_MISMATCH, "the root sends");
    }
    meshcoll_destroy(mesh);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    in = malloc(4 * BIG * sizeof *in);
    out = malloc(4 * BIG * sizeof *out);
    other = malloc(4 * BIG * sizeof *other);
    check(in && out && other, "memory");
    for (size_t i = 0; i < 4 * BIG; i++)
        in[i] = 1;
    test_two_handles();
    test_unawaited();
    test_counts_differ(100, 200);
    test_counts_differ(200, 100);
    test_counts_differ(5000, 3);
    if (rank == 0)
        printf("waits: ok\n");
    free(in);
    free(out);
    free(other);
    MPI_Finalize();
    return 0;
}
