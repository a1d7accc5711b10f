/* More choices and requests than blocking calls keep: ranks forget the same ones, and none mixes up. */
#include <meshcoll/mpi.h>

#include <stdio.h>

enum { MOST = 256, ROUNDS = 6 };

static int rank, size;

static void check(int good, const char *what, int i)
{
    if (good)
        return;
    fprintf(stderr, "rank %d, call %d: %s; last error: %s\n", rank, i, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Buffers are of each rank's own: no choice may depend on them. */
static void broadcast(meshcoll_t *mesh, int root, int count, int i)
{
    static int buffer[2 * MOST];
    int *const at = buffer + (rank + i) % MOST;
    for (int k = 0; k < count; k++)
        at[k] = rank == root ? i * MOST + k : -1;
    check(meshcoll_bcast(mesh, at, at, (size_t)count, MESHCOLL_INT32, root) == MESHCOLL_OK, "bcast",
          i);
    for (int k = 0; k < count; k++)
        check(at[k] == i * MOST + k, "another broadcast's data", i);
}

static void sum(meshcoll_t *mesh, int count, int i)
{
    static int in[MOST], out[MOST];
    for (int k = 0; k < count; k++)
        in[k] = rank * i + k;
    check(meshcoll_allreduce(mesh, in, out, (size_t)count, MESHCOLL_INT32, MESHCOLL_SUM) ==
              MESHCOLL_OK,
          "allreduce", i);
    for (int k = 0; k < count; k++)
        check(out[k] == size * (size - 1) / 2 * i + size * k, "another sum", i);
}

int main(int argc, char **argv)
{
    static const char *const strategy[] = {"bcast:mst(box) bcast:mst(gpu)",
                                           "bcast:star(box) bcast:mst(gpu)",
                                           "bcast:chain(box) bcast:chain(gpu) segments=4",
                                           "bcast:mst(gpu) bcast:mst(box)",
                                           "bcast:mst(box*gpu)",
                                           "bcast:star(box*gpu)",
                                           "bcast:chain(box*gpu) segments=2",
                                           "scatter:mst(box) bcast:mst(gpu) allgather:ring(box)",
                                           "scatter:mst(box*gpu) allgather:ring(box*gpu)",
                                           NULL};
    enum { STRATEGIES = sizeof strategy / sizeof strategy[0] };
    meshcoll_t *mesh = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const meshcoll_params_t params = {.size = sizeof params, .mesh = "box=2,gpu=2"};
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "create", 0);
    for (int i = 0; i < ROUNDS * 100; i++) {
        const int way = i * i % 97;
        if (i % 3 == 0)
            check(meshcoll_set_strategy(mesh, MESHCOLL_BCAST, strategy[way % STRATEGIES]) ==
                      MESHCOLL_OK,
                  "set_strategy", i);
        broadcast(mesh, way % size, 1 + way * 7 % (MOST - 1), i);
        if (i % 5 == 0)
            sum(mesh, 1 + way, i);
        if (i % 50 == 0)
            check(meshcoll_barrier(mesh) == MESHCOLL_OK, "barrier", i);
    }
    meshcoll_destroy(mesh);
    MPI_Finalize();
    return 0;
}
