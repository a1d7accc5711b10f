/* Ranks that make different calls, of as many bytes, under one number are told so, whoever waits, and none takes the
 * data of the other: on warm connections, which no greeting compares. Rank 1 makes another call than the others. */
#include <meshcoll/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 2, LARGE = 100000, MOST_CALLS = 20000 };

typedef enum { DATATYPE, OP, ROOT, COLLECTIVE, KINDS } kind_t;
static const char *const name[KINDS] = {"datatype", "operation", "root", "collective"};
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

/* The call of one rank. Of each pair one end waits for the other. */
static int call(meshcoll_t *mesh, kind_t kind, size_t count, int is_odd)
{
    const meshcoll_datatype_t type = kind == DATATYPE && is_odd ? MESHCOLL_FLOAT32 : MESHCOLL_INT32;
    if (kind == ROOT)
        return meshcoll_bcast(mesh, in, out, count, type, is_odd ? 1 : 0);
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
                      meshcoll_bcast(mesh, in, out, count, MESHCOLL_INT32, root) == 0,
                  OP, count, "calls before");
}

static void test(kind_t kind, size_t count)
{
    meshcoll_t *mesh;
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, kind, count, "create");
    warm(mesh, count);
    int status = call(mesh, kind, count, rank == 1);
    /* who waited for nobody is told by the next one, or by the barrier of its lead */
    for (int i = 0; i < MOST_CALLS && !status; i++)
        status = meshcoll_bcast(mesh, in, out, count, MESHCOLL_INT32, 0);
    check(status == MESHCOLL_ERR_MISMATCH, kind, count, "expected to be told");
    check(strstr(meshcoll_last_error(), "has made another call than rank") != NULL ||
              strstr(meshcoll_last_error(), "ranks have made different calls on ") != NULL,
          kind, count, "the sentence");
    if (kind != ROOT)
        check(strstr(meshcoll_last_error(), "whose is ") != NULL, kind, count, "whose call");
    meshcoll_destroy(mesh);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int kind = 0; kind < KINDS; kind++) {
        if (argc > 1 && strcmp(argv[1], name[kind]) != 0)
            continue;
        test((kind_t)kind, COUNT);
        test((kind_t)kind, LARGE);
    }
    MPI_Finalize();
    return 0;
}
