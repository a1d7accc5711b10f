/* Ranks that make other calls, not only with other arguments: where calls are compared ("checked") all are
 * told, also where the calls take unlike numbers of messages; without ("plain"), those that wait for a
 * group in which a rank was refused a call. */
#include <meshcoll/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 10, ODD_RANK = 2, MOST_RANKS = 16, LIMIT_S = 20 };
typedef enum { BLOCKING, BEGUN, PERSISTENT, WAYS } way_t;
static const char *const way_name[WAYS] = {"blocking", "begun", "persistent"};

static int rank, size;
static float in[MOST_RANKS * COUNT], out[MOST_RANKS * COUNT];
static size_t counts[MOST_RANKS], displs[MOST_RANKS];

static void check(int good, const char *test, way_t way, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d, %s, %s: %s; last error: %s\n", rank, test, way_name[way], what,
            meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static meshcoll_t *create(const char *checks)
{
    meshcoll_t *mesh;
    const meshcoll_params_t params = {.size = sizeof params, .check = checks, .timeout = "20"};
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "create", BLOCKING, "");
    return mesh;
}

static meshcoll_args_t allreduce(void)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = MESHCOLL_ALLREDUCE,
                             .in = in,
                             .out = out,
                             .count = COUNT,
                             .datatype = MESHCOLL_FLOAT32,
                             .op = MESHCOLL_SUM};
}

/* Its blocks pass other ranks, which learn their sizes first. */
static meshcoll_args_t alltoallv(void)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = MESHCOLL_ALLTOALL,
                             .in = in,
                             .out = out,
                             .datatype = MESHCOLL_FLOAT32,
                             .counts = counts,
                             .displs = displs,
                             .in_counts = counts,
                             .in_displs = displs,
                             .strategy = "hierarchical"};
}

static int call(meshcoll_t *mesh, const meshcoll_args_t *a, way_t way)
{
    meshcoll_request_t *request = NULL;
    int status =
        way == PERSISTENT ? meshcoll_init(mesh, a, &request) : meshcoll_begin(mesh, a, &request);
    if (!status && way == PERSISTENT)
        status = meshcoll_start(request);
    if (!status)
        status = meshcoll_wait(request);
    if (way == PERSISTENT)
        meshcoll_free(request);
    return status;
}

/* All calls still match, and give the right results. */
static void check_usable(meshcoll_t *mesh, const char *test, way_t way)
{
    const meshcoll_args_t sum = allreduce(), blocks = alltoallv();
    for (int i = 0; i < size * COUNT; i++)
        in[i] = (float)(rank * size * COUNT + i);
    for (int w = BEGUN; w < WAYS; w++) {
        check(call(mesh, &blocks, (way_t)w) == MESHCOLL_OK, test, way, "alltoallv after it");
        for (int i = 0; i < size * COUNT; i++)
            check(out[i] == (float)(i / COUNT * size * COUNT + rank * COUNT + i % COUNT), test, way,
                  "the blocks after it");
        check(call(mesh, &sum, (way_t)w) == MESHCOLL_OK, test, way, "allreduce after it");
    }
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, test, way, "a barrier after it");
}

/* The odd rank was refused its alltoallv. */
static void test_refused_blocks(meshcoll_t *mesh, way_t way)
{
    meshcoll_args_t a = alltoallv();
    a.in = rank == ODD_RANK ? NULL : in;
    const int status = call(mesh, &a, way);
    check(status == (rank == ODD_RANK ? MESHCOLL_ERR_INVALID_ARG : MESHCOLL_ERR_MISMATCH),
          "refused alltoallv", way, "its status");
    check_usable(mesh, "refused alltoallv", way);
}

/* The odd rank makes `odds`, the others `others`, and all are told so. */
static void test_other_call(meshcoll_t *mesh, const char *test, const meshcoll_args_t *others,
                            way_t way, const meshcoll_args_t *odds, way_t odd_way)
{
    const int status = rank == ODD_RANK ? call(mesh, odds, odd_way) : call(mesh, others, way);
    check(status == MESHCOLL_ERR_MISMATCH, test, way, "its status");
    check(strstr(meshcoll_last_error(), "rank 2 for ") != NULL, test, way, "the odd rank");
    check_usable(mesh, test, way);
}

static int group_of(meshcoll_t *mesh, int n)
{
    int status = meshcoll_group_begin(mesh);
    for (int i = 0; i < n && !status; i++)
        status = meshcoll_allreduce(mesh, &in[i * COUNT], &out[i * COUNT], COUNT, MESHCOLL_FLOAT32,
                                    MESHCOLL_SUM);
    return status ? status : meshcoll_group_end(mesh);
}

/* The operation numbers of ranks differ from here on, so the mesh fails, and all know why. */
static void test_group(const char *test, int odd_calls)
{
    meshcoll_t *const mesh = create("1");
    const meshcoll_args_t lone = allreduce();
    const int status = rank != ODD_RANK ? group_of(mesh, 3)
                       : odd_calls > 0  ? group_of(mesh, odd_calls)
                                        : call(mesh, &lone, BEGUN);
    check(status == MESHCOLL_ERR_MISMATCH, test, BLOCKING, "its status");
    check(strstr(meshcoll_last_error(), "a group of 3 calls; rank 2 for ") != NULL, test, BLOCKING,
          "what ranks asked for");
    check(meshcoll_barrier(mesh) == MESHCOLL_ERR_MISMATCH, test, BLOCKING, "the mesh after it");
    meshcoll_destroy(mesh);
}

/* One of the odd rank's calls, of three, is refused. */
static int group_refused(meshcoll_t *mesh, int which)
{
    int status = meshcoll_group_begin(mesh);
    for (int i = 0; i < 3 && !status; i++)
        (void)meshcoll_allreduce(mesh, rank == ODD_RANK && i == which ? NULL : &in[i * COUNT],
                                 &out[i * COUNT], COUNT, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    return status ? status : meshcoll_group_end(mesh);
}

static void test_refused_in_group(meshcoll_t *mesh)
{
    for (int which = 0; which < 3; which++) {
        const int status = group_refused(mesh, which);
        check(status == (rank == ODD_RANK ? MESHCOLL_ERR_INVALID_ARG : MESHCOLL_ERR_MISMATCH),
              "refused in a group", BLOCKING, "its status");
    }
    check_usable(mesh, "refused in a group", BLOCKING);
}

/* All wait for one that is late, and look meanwhile whether another rank was refused something that they were not. */
static void wait_for_late(meshcoll_t *mesh, const char *test, way_t way)
{
    enum { LATE_US = 400 * 1000 };
    if (rank == ODD_RANK)
        usleep(LATE_US);
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, test, way, "the barrier after it");
}

/* Refused alike after the comparison: the mesh goes on. */
static void test_refused_alike(meshcoll_t *mesh)
{
    static const char test[] = "refused alike";
    meshcoll_request_t *none;
    meshcoll_args_t sum = allreduce(), blocks = alltoallv();
    sum.strategy = "nonsense";
    blocks.strategy = "alltoall:bruck";
    for (int way = BEGUN; way < WAYS; way++)
        check(call(mesh, &blocks, (way_t)way) == MESHCOLL_ERR_STRATEGY, test, (way_t)way, "blocks");
    check(meshcoll_group_begin(mesh) == MESHCOLL_OK, test, BLOCKING, "a group");
    check(meshcoll_begin(mesh, &sum, &none) == MESHCOLL_OK, test, BLOCKING, "in a group");
    check(meshcoll_group_end(mesh) == MESHCOLL_ERR_STRATEGY, test, BLOCKING, "the group's end");
    wait_for_late(mesh, test, BLOCKING);
    check_usable(mesh, test, BLOCKING);
}

static void run_checked(void)
{
    meshcoll_t *const mesh = create("1");
    const meshcoll_args_t sum = allreduce(), blocks = alltoallv();
    for (int way = BEGUN; way < WAYS; way++) {
        test_refused_blocks(mesh, (way_t)way);
        test_other_call(mesh, "alltoallv", &sum, (way_t)way, &blocks, (way_t)way);
        test_other_call(mesh, "allreduce", &blocks, (way_t)way, &sum, (way_t)way);
    }
    test_other_call(mesh, "persistent", &sum, BEGUN, &sum, PERSISTENT);
    test_other_call(mesh, "not persistent", &sum, PERSISTENT, &sum, BEGUN);
    test_refused_in_group(mesh);
    test_refused_alike(mesh);
    meshcoll_destroy(mesh);
    test_group("a shorter group", 2);
    test_group("a lone call", 0);
}

/* A group without elements is nothing that others wait in. */
static void test_empty_group_destroyed(void)
{
    static const char test[] = "an empty group destroyed";
    meshcoll_t *const mesh = create("0"), *all = NULL;
    check(meshcoll_split(mesh, "rank", &all) == MESHCOLL_OK, test, BLOCKING, "the split");
    check(meshcoll_group_begin(all) == MESHCOLL_OK, test, BLOCKING, "the group");
    check(meshcoll_allreduce(all, in, out, 0, MESHCOLL_FLOAT32, MESHCOLL_SUM) == MESHCOLL_OK, test,
          BLOCKING, "the call");
    if (rank != ODD_RANK)
        check(meshcoll_group_end(all) == MESHCOLL_OK, test, BLOCKING, "the end");
    else
        meshcoll_destroy(all);
    wait_for_late(mesh, test, BLOCKING);
    if (rank != ODD_RANK)
        meshcoll_destroy(all);
    meshcoll_destroy(mesh);
}

static void run_plain(void)
{
    test_empty_group_destroyed();
    for (int which = 0; which < 3; which++) {
        meshcoll_t *const mesh = create("0");
        const double start = MPI_Wtime();
        const int status = group_refused(mesh, which);
        check(status == (rank == ODD_RANK ? MESHCOLL_ERR_INVALID_ARG : MESHCOLL_ERR_PEER),
              "refused in a group", BLOCKING, "its status");
        check(rank == ODD_RANK || strstr(meshcoll_last_error(), "rank 2 was refused this call"),
              "refused in a group", BLOCKING, "the reason");
        check(MPI_Wtime() - start < LIMIT_S, "refused in a group", BLOCKING, "the time");
        meshcoll_destroy(mesh);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(size > ODD_RANK && size <= MOST_RANKS, "ranks", BLOCKING, "expected 3 to 16");
    for (int r = 0; r < size; r++) {
        counts[r] = COUNT;
        displs[r] = (size_t)r * COUNT;
    }
    if (argc > 1 && !strcmp(argv[1], "plain"))
        run_plain();
    else
        run_checked();
    MPI_Finalize();
    return 0;
}
