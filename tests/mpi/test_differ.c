/* Ranks that make different calls, of as many bytes, under one number are told so, whoever waits, and none takes the
 * data of the other: on warm connections, which no greeting compares. Rank 1 makes another call than the others. Also
 * where all wait and none has sent, and, of three ranks, where the third is through with its call and has sent to
 * another one; and a rank that is late is no alarm. */
#include <meshcoll/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 2, LARGE = 100000, MOST_CALLS = 20000, LIMIT_S = 60 };

typedef enum { DATATYPE, OP, ROOT, COLLECTIVE, PERSISTENT, WAITING, SENT, KINDS } kind_t;
static const char *const name[KINDS] = {"datatype",   "operation", "root", "collective",
                                        "persistent", "waiting",   "sent"};
static int rank, size;
static int32_t in[LARGE], out[LARGE];

static void check(int good, kind_t kind, size_t count, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d, another %s, %zu elements: %s; last error: %s\n", rank, name[kind],
            count, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int start(meshcoll_t *mesh, size_t count, meshcoll_op_t op)
{
    meshcoll_request_t *request;
    int status = meshcoll_allreduce_init(mesh, in, out, count, MESHCOLL_INT32, op, &request);
    check(status == MESHCOLL_OK, PERSISTENT, count, "init");
    status = meshcoll_start(request);
    status = status ? status : meshcoll_wait(request);
    meshcoll_free(request);
    return status;
}

/* The call of one rank. Of each pair one end waits for the other. */
static int call(meshcoll_t *mesh, kind_t kind, size_t count, int is_odd)
{
    const meshcoll_datatype_t type = kind == DATATYPE && is_odd ? MESHCOLL_FLOAT32 : MESHCOLL_INT32;
    if (kind == ROOT)
        return meshcoll_bcast(mesh, in, out, count, type, is_odd ? 1 : 0);
    if (kind == WAITING)
        return meshcoll_reduce(mesh, in, out, count, type, MESHCOLL_SUM, is_odd ? 1 : 0);
    if (kind == SENT)
        return meshcoll_reduce(mesh, in, out, count, type, MESHCOLL_SUM, rank == 2 ? 0 : 1);
    if (kind == PERSISTENT)
        return start(mesh, count, is_odd ? MESHCOLL_MAX : MESHCOLL_SUM);
    if (kind == COLLECTIVE && is_odd)
        return meshcoll_bcast(mesh, in, out, count, type, 0);
    return meshcoll_allreduce(mesh, in, out, count, type,
                              kind == OP && is_odd ? MESHCOLL_MAX : MESHCOLL_SUM);
}

static void warm(meshcoll_t *mesh, size_t count)
{
    for (int i = 0; i < 3; i++)
        for (int root = 0; root < size; root++)
            check(meshcoll_allreduce(mesh, in, out, count, MESHCOLL_INT32, MESHCOLL_SUM) == 0 &&
                      meshcoll_bcast(mesh, in, out, count, MESHCOLL_INT32, root) == 0 &&
                      meshcoll_reduce(mesh, in, out, count, MESHCOLL_INT32, MESHCOLL_SUM, root) ==
                          0,
                  OP, count, "calls before");
}

static void test(kind_t kind, size_t count)
{
    meshcoll_t *mesh;
    const meshcoll_params_t params = {.size = sizeof params, .timeout = "60"};
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, kind, count, "create");
    warm(mesh, count);
    const double start = MPI_Wtime();
    int status = call(mesh, kind, count, rank == 1);
    /* who waited for nobody is told by the next one, or by the barrier of its lead */
    for (int i = 0; i < MOST_CALLS && !status; i++)
        status = kind == SENT ? call(mesh, OP, count, 0)
                              : meshcoll_bcast(mesh, in, out, count, MESHCOLL_INT32, 0);
    check(status == MESHCOLL_ERR_MISMATCH, kind, count, "expected to be told");
    /* the next calls may be told by what they learn, which the calls of different roots count for */
    check(strstr(meshcoll_last_error(), "has made another call than rank") != NULL ||
              strstr(meshcoll_last_error(), "ranks have made different calls on ") != NULL ||
              (kind == ROOT &&
               strstr(meshcoll_last_error(), "an earlier call differed between ranks")),
          kind, count, "the sentence");
    if (kind != ROOT)
        check(strstr(meshcoll_last_error(), "whose is ") != NULL, kind, count, "whose call");
    if (kind == WAITING) {
        check(strstr(meshcoll_last_error(), ", sum, root 0") &&
                  strstr(meshcoll_last_error(), ", sum, root 1"),
              kind, count, "both calls");
        check(MPI_Wtime() - start < LIMIT_S / 2.0, kind, count, "told before the time limit");
    }
    meshcoll_destroy(mesh);
}

/* One call waits for a rank that is late, behind others in flight. */
static void late(void)
{
    enum { IN_FLIGHT = 4 };
    meshcoll_t *mesh;
    meshcoll_request_t *request[IN_FLIGHT];
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, WAITING, COUNT, "create");
    warm(mesh, COUNT);
    for (int i = 0; i < IN_FLIGHT; i++) {
        if (i == rank % IN_FLIGHT)
            usleep(1200000);
        check(meshcoll_ireduce(mesh, in, &out[(size_t)i * COUNT], COUNT, MESHCOLL_INT32,
                               MESHCOLL_SUM, i % size, &request[i]) == MESHCOLL_OK,
              WAITING, COUNT, "a call in flight");
    }
    for (int i = IN_FLIGHT; i-- > 0;)
        check(meshcoll_wait(request[i]) == MESHCOLL_OK, WAITING, COUNT, "a late call");
    if (rank == 1)
        usleep(1200000);
    check(meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_INT32, MESHCOLL_SUM) == MESHCOLL_OK,
          WAITING, COUNT, "a call of a late rank");
    meshcoll_destroy(mesh);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int kind = 0; kind < KINDS; kind++) {
        if (argc > 1 ? strcmp(argv[1], name[kind]) != 0 : kind == SENT)
            continue;
        test((kind_t)kind, COUNT);
        test((kind_t)kind, LARGE);
    }
    if (argc == 1 || strcmp(argv[1], "late") == 0)
        late();
    MPI_Finalize();
    return 0;
}
