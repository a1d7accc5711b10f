/* Ranks that disagree about a call are told so: by the greeting of new connections (argument "cold"),
 * and at any call with MESHCOLL_CHECK=1 (argument "checked"). Rank 2 makes another call than the
 * others. */
#include <meshcoll/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Where nothing tells a rank, it stops waiting so long after the odd rank was told. */
enum { COUNT = 10, ODD_RANK = 2, MOST_SECONDS = 20, GRACE_MS = 300 };

typedef enum {
    SAME,
    OP,
    DATATYPE,
    ROOT,
    LENGTH,
    COLLECTIVE,
    STRATEGY,
    BARRIER,
    EMPTY,
    KINDS
} kind_t;
typedef enum { BLOCKING, BEGUN, PERSISTENT, WAYS } way_t;
static const char *const kind_name[KINDS] = {"same",       "op",       "datatype", "root", "count",
                                             "collective", "strategy", "barrier",  "empty"};
static const char *const way_name[WAYS] = {"blocking", "begun", "persistent"};

static int rank, size, checked;
static float in[4 * COUNT], out[4 * COUNT];

static void check(int good, kind_t kind, way_t way, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d, another %s, %s: %s; last error: %s\n", rank, kind_name[kind],
            way_name[way], what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The call of one rank. Those that differ in the root are broadcasts, the others allreduces. */
static meshcoll_args_t args_of(kind_t kind, int is_odd)
{
    meshcoll_args_t a = {.size = sizeof a,
                         .collective = kind == ROOT ? MESHCOLL_BCAST : MESHCOLL_ALLREDUCE,
                         .in = in,
                         .out = out,
                         .count = COUNT,
                         .datatype = MESHCOLL_FLOAT32,
                         .op = MESHCOLL_SUM};
    if (kind == STRATEGY)
        a.strategy = is_odd ? "flat-ring" : "flat-mst";
    if (!is_odd)
        return a;
    a.op = kind == OP ? MESHCOLL_MAX : a.op;
    a.datatype = kind == DATATYPE ? MESHCOLL_INT32 : a.datatype;
    a.root = kind == ROOT ? ODD_RANK : 0;
    a.count = kind == LENGTH ? 2 * COUNT : kind == EMPTY ? 0 : a.count;
    a.collective = kind == COLLECTIVE ? MESHCOLL_BCAST : a.collective;
    return a;
}

static int begin(meshcoll_t *mesh, kind_t kind, way_t way, meshcoll_request_t **request)
{
    const int is_odd = rank == ODD_RANK;
    const meshcoll_args_t a = args_of(kind, is_odd);
    int status;
    if (kind == BARRIER && is_odd)
        status = way == PERSISTENT ? meshcoll_barrier_init(mesh, request)
                                   : meshcoll_ibarrier(mesh, request);
    else
        status = way == PERSISTENT ? meshcoll_init(mesh, &a, request)
                                   : meshcoll_begin(mesh, &a, request);
    return status || way == BEGUN ? status : meshcoll_start(*request);
}

static int run_blocking(meshcoll_t *mesh, kind_t kind)
{
    const meshcoll_args_t a = args_of(kind, rank == ODD_RANK);
    if (kind == BARRIER && rank == ODD_RANK)
        return meshcoll_barrier(mesh);
    if (a.strategy || kind == SAME) {
        meshcoll_request_t *request = NULL;
        const int status = meshcoll_begin(mesh, &a, &request);
        return status ? status : meshcoll_wait(request);
    }
    if (a.collective == MESHCOLL_BCAST)
        return meshcoll_bcast(mesh, a.in, a.out, a.count, a.datatype, a.root);
    return meshcoll_allreduce(mesh, a.in, a.out, a.count, a.datatype, a.op);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Ends with IN_PROGRESS where nothing tells this rank. The odd rank says when it has ended. Its call, or another's, may
 * have failed already when it was begun: the mesh had. */
static int await(meshcoll_request_t *request, int begun)
{
    double end = now() + MOST_SECONDS;
    int status = begun, has_ended = rank == ODD_RANK;
    MPI_Request word = MPI_REQUEST_NULL;
    if (rank != ODD_RANK)
        MPI_Irecv(NULL, 0, MPI_INT, ODD_RANK, 0, MPI_COMM_WORLD, &word);
    while (!begun && (status = meshcoll_test(request)) == MESHCOLL_IN_PROGRESS && now() < end) {
        if (!has_ended)
            MPI_Test(&word, &has_ended, MPI_STATUS_IGNORE);
        else if (rank != ODD_RANK && end > now() + GRACE_MS * 1e-3)
            end = now() + GRACE_MS * 1e-3;
    }
    for (int r = 0; rank == ODD_RANK && r < size; r++)
        if (r != ODD_RANK)
            MPI_Send(NULL, 0, MPI_INT, r, 0, MPI_COMM_WORLD);
    MPI_Wait(&word, MPI_STATUS_IGNORE);
    return status;
}

static int run(meshcoll_t *mesh, kind_t kind, way_t way)
{
    meshcoll_request_t *request = NULL;
    if (way == BLOCKING)
        return run_blocking(mesh, kind);
    int status = begin(mesh, kind, way, &request);
    if (!checked)
        status = await(request, status);
    else if (!status)
        status = meshcoll_wait(request);
    if (request && way == PERSISTENT)
        meshcoll_free(request);
    return status;
}

static meshcoll_t *create(const char *checks)
{
    meshcoll_t *mesh;
    const meshcoll_params_t params = {.size = sizeof params, .check = checks};
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, SAME, BLOCKING, "create");
    return mesh;
}

/* The sentence, but for the number of the call and which others are named. */
static int names_both(kind_t kind)
{
    static const char *const first[KINDS] = {
        [ROOT] = "asked for bcast of 10 float32, root 0; rank",
        [STRATEGY] = " by \"",
    };
    static const char *const odd[KINDS] = {[OP] = "for allreduce of 10 float32, max",
                                           [DATATYPE] = "for allreduce of 10 int32, sum",
                                           [ROOT] = "for bcast of 10 float32, root 2",
                                           [LENGTH] = "of 20 float32, sum",
                                           [COLLECTIVE] = "for bcast of 10 float32, root 0",
                                           [STRATEGY] = " by \"",
                                           [BARRIER] = "for a barrier",
                                           [EMPTY] = "of 0 float32"};
    const char *const said = meshcoll_last_error(), *const odds = strstr(said, "rank 2 for ");
    const char *const others =
        first[kind] ? first[kind] : "asked for allreduce of 10 float32, sum; rank";
    return strstr(said, others) && odds && strstr(odds, odd[kind]);
}

/* The ends of a connection that disagree are told, so the odd rank and one more at least; nobody
 * succeeds with data of another call. */
static void test_cold(kind_t kind, way_t way)
{
    meshcoll_t *const mesh = create("0");
    const int status = run(mesh, kind, way);
    int told = status == MESHCOLL_ERR_MISMATCH, n_told;
    check(kind != SAME || status == MESHCOLL_OK, kind, way, "equal calls");
    check(!told || names_both(kind), kind, way, "the sentence");
    MPI_Allreduce(&told, &n_told, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(kind == SAME || n_told >= 2, kind, way, "expected two ranks to be told");
    check(kind == SAME || rank != ODD_RANK || told, kind, way, "the odd rank is told");
    meshcoll_destroy(mesh);
}

static void same_sentence(kind_t kind, way_t way)
{
    enum { ROOM = 512 };
    char mine[ROOM] = "", firsts[ROOM];
    snprintf(mine, sizeof mine, "%s", meshcoll_last_error());
    memcpy(firsts, mine, sizeof mine);
    MPI_Bcast(firsts, ROOM, MPI_CHAR, 0, MPI_COMM_WORLD);
    check(!strcmp(mine, firsts), kind, way, firsts);
}

/* All are told the same, and the mesh runs on. */
static void test_checked(meshcoll_t *mesh, kind_t kind, way_t way)
{
    const int status = run(mesh, kind, way);
    if (kind == SAME) {
        check(status == MESHCOLL_OK, kind, way, "equal calls");
        return;
    }
    check(status == MESHCOLL_ERR_MISMATCH, kind, way, "expected to be told");
    check(names_both(kind), kind, way, "the sentence");
    same_sentence(kind, way);
}

/* Another count in the second of three calls; then another number of calls. */
static void test_group(meshcoll_t *mesh)
{
    check(meshcoll_group_begin(mesh) == MESHCOLL_OK, SAME, BLOCKING, "group_begin");
    for (int i = 0; i < 3; i++) {
        const size_t count = i == 1 && rank == ODD_RANK ? COUNT + 1 : COUNT;
        check(meshcoll_allreduce(mesh, &in[i * COUNT], &out[i * COUNT], count, MESHCOLL_FLOAT32,
                                 MESHCOLL_SUM) == MESHCOLL_OK,
              SAME, BLOCKING, "a call in a group");
    }
    check(meshcoll_group_end(mesh) == MESHCOLL_ERR_MISMATCH, LENGTH, BLOCKING, "a group");
    check(strstr(meshcoll_last_error(), "of 11 float32") != NULL, LENGTH, BLOCKING, "its call");
    same_sentence(LENGTH, BLOCKING);
    check(meshcoll_group_begin(mesh) == MESHCOLL_OK, SAME, BLOCKING, "group_begin");
    for (int i = 0; i < 3; i++)
        (void)meshcoll_allreduce(mesh, &in[i], &out[i], 1, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    check(meshcoll_group_end(mesh) == MESHCOLL_OK, SAME, BLOCKING, "a group of equal calls");
}

/* A call that one rank's arguments do not allow: the others learn why. */
static void test_refused(meshcoll_t *mesh, way_t way)
{
    meshcoll_request_t *request = NULL;
    const meshcoll_args_t a = args_of(SAME, 0);
    meshcoll_args_t bad = a;
    bad.in = rank == ODD_RANK ? NULL : in;
    int status = way == BLOCKING
                     ? meshcoll_allreduce(mesh, bad.in, out, COUNT, a.datatype, MESHCOLL_SUM)
                 : way == BEGUN ? meshcoll_begin(mesh, &bad, &request)
                                : meshcoll_init(mesh, &bad, &request);
    if (rank == ODD_RANK) {
        check(status == MESHCOLL_ERR_INVALID_ARG, SAME, way, "a refusal");
        check(strstr(meshcoll_last_error(), "in is NULL") != NULL, SAME, way, "its reason");
    } else {
        if (!status && way == PERSISTENT)
            status = meshcoll_start(request);
        if (!status && way != BLOCKING)
            status = meshcoll_wait(request);
        check(status == MESHCOLL_ERR_MISMATCH, SAME, way, "a peer was refused");
        check(strstr(meshcoll_last_error(), "was refused: allreduce: in is NULL") != NULL, SAME,
              way, "the peer's reason");
    }
    if (way == PERSISTENT)
        meshcoll_free(request);
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, SAME, way, "after a refusal");
}

static void run_checked(void)
{
    meshcoll_t *const mesh = create("1");
    for (int round = 0; round < 2; round++) /* cold, then warm */
        for (int kind = 0; kind < KINDS; kind++)
            for (int way = 0; way < WAYS; way++) {
                test_checked(mesh, (kind_t)kind, (way_t)way);
                test_checked(mesh, SAME, (way_t)way);
            }
    for (int way = 0; way < WAYS; way++)
        test_refused(mesh, (way_t)way);
    test_group(mesh);
    meshcoll_destroy(mesh);
}

static void run_cold(void)
{
    for (int kind = 0; kind < EMPTY; kind++)
        for (int way = BEGUN; way < WAYS; way++)
            test_cold((kind_t)kind, (way_t)way);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    checked = argc > 1 && !strcmp(argv[1], "checked");
    if (checked)
        run_checked();
    else
        run_cold();
    MPI_Finalize();
    return 0;
}
