/*
 * MPI's messages move while a rank waits in meshcoll. Rank 0 sends a message that needs its receiver
 * (by rendezvous) and waits in meshcoll; the others receive it in MPI, and come to meshcoll after
 * that. A rank that waited without progressing MPI would wait for ever.
 *
 *     test_hook default|own|none|waits
 */
#include <meshcoll/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 20, ROUNDS = 5 };

static int rank, size;
static meshcoll_t *mesh;
static char *buffer;
static MPI_Request *sends;
static long n_hooks, n_refused;

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s; last error: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Inside, what blocks is refused. */
static int hook(void *context)
{
    int n = 0, done[64];
    meshcoll_t *part;
    check(context == &n_hooks, "the hook's context");
    /* not a collective: a refused one takes its number, here on some ranks only */
    if (n_hooks++ == 0)
        n_refused += meshcoll_split(mesh, "gpu", &part) == MESHCOLL_ERR_INVALID_ARG &&
                     strstr(meshcoll_last_error(), "must not call what blocks");
    MPI_Testsome(size - 1, sends, &n, done, MPI_STATUSES_IGNORE);
    return n > 0;
}

static int idle(void *context)
{
    (void)context;
    return 0;
}

static void wait_by_barrier(void)
{
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, "barrier");
}

/* Two meshes, which take another path than one. */
static void wait_for_two(meshcoll_t *other)
{
    meshcoll_request_t *request[2];
    check(meshcoll_ibarrier(mesh, &request[0]) == MESHCOLL_OK, "ibarrier");
    check(meshcoll_ibarrier(other, &request[1]) == MESHCOLL_OK, "ibarrier");
    check(meshcoll_waitall(2, request) == MESHCOLL_OK, "waitall");
}

static void run_round(meshcoll_t *other, int round)
{
    if (rank == 0) {
        memset(buffer, round, BYTES);
        for (int r = 1; r < size; r++)
            MPI_Isend(buffer, BYTES, MPI_BYTE, r, 7, MPI_COMM_WORLD, &sends[r - 1]);
    } else {
        MPI_Recv(buffer, BYTES, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(buffer[0] == round && buffer[BYTES - 1] == round, "the message's bytes");
    }
    if (other)
        wait_for_two(other);
    else
        wait_by_barrier();
    if (rank == 0)
        MPI_Waitall(size - 1, sends, MPI_STATUSES_IGNORE);
}

/* Nothing else may hang if the hook is switched off and all send what needs nobody. */
static void run_none(void)
{
    for (int round = 0; round < ROUNDS; round++)
        wait_by_barrier();
}

int main(int argc, char **argv)
{
    const char *const what = argc > 1 ? argv[1] : "default";
    int given;
    meshcoll_t *other = NULL;
    meshcoll_params_t params = {.size = sizeof params};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(size <= 64, "at most 64 ranks");
    alarm(60);
    buffer = malloc(BYTES);
    sends = calloc((size_t)size, sizeof(MPI_Request));
    for (int r = 0; r < size; r++)
        sends[r] = MPI_REQUEST_NULL;
    if (strcmp(what, "own") == 0) {
        params.hook = hook;
        params.hook_context = &n_hooks;
    } else if (strcmp(what, "none") == 0) {
        params.hook = idle;
    }
    check(meshcoll_create(MPI_COMM_WORLD, &params, &mesh) == MESHCOLL_OK, "create");
    if (strcmp(what, "waits") == 0)
        check(meshcoll_create(MPI_COMM_WORLD, &params, &other) == MESHCOLL_OK, "create");
    if (strcmp(what, "none") == 0)
        run_none();
    for (int round = 0; round < ROUNDS && strcmp(what, "none") != 0; round++)
        run_round(other, round);
    check(rank > 0 || !params.hook_context || (n_hooks > 0 && n_refused == 1),
          "the hook is called, and may not block");
    meshcoll_destroy(other);
    meshcoll_destroy(mesh);
    free(sends);
    free(buffer);
    MPI_Finalize();
    return 0;
}
