/*
 * A queue of work: rank 0 hands out pieces to whoever asks, with tagged messages from any source.
 * Each rank sums up its pieces, and an allreduce on the same mesh sums up the ranks.
 *   meshcoll run -n 4 messages
 */
#include <meshcoll/env.h>

#include <stdio.h>

enum { PIECES = 100, ASK = 1, PIECE = 2, NONE = -1 };

static int check(int status, const char *what)
{
    if (status < 0)
        fprintf(stderr, "%s: %s (%s)\n", what, meshcoll_last_error(),
                meshcoll_status_string(status));
    return status;
}

/* Answers each request with the next piece; each other rank asks once more than it is given. */
static int hand_out(meshcoll_t *mesh)
{
    int status = MESHCOLL_OK;
    if (meshcoll_size(mesh) == 1)
        return status; /* nobody asks */
    for (int next = 0; next < PIECES + meshcoll_size(mesh) - 1 && !status; next++) {
        const int32_t piece = next < PIECES ? next : NONE;
        meshcoll_received_t from;
        status =
            check(meshcoll_recv(mesh, NULL, 0, MESHCOLL_INT32, MESHCOLL_ANY_SOURCE, ASK, &from),
                  "meshcoll_recv");
        if (!status)
            status = check(meshcoll_send(mesh, &piece, 1, MESHCOLL_INT32, from.source, PIECE),
                           "meshcoll_send");
    }
    return status;
}

static int work(meshcoll_t *mesh, int64_t *sum)
{
    int status = MESHCOLL_OK;
    for (int32_t piece = 0; !status && piece != NONE;) {
        status = check(meshcoll_send(mesh, NULL, 0, MESHCOLL_INT32, 0, ASK), "meshcoll_send");
        if (!status)
            status = check(meshcoll_recv(mesh, &piece, 1, MESHCOLL_INT32, 0, PIECE, NULL),
                           "meshcoll_recv");
        if (!status && piece != NONE)
            *sum += piece;
    }
    return status;
}

static int run(meshcoll_t *mesh)
{
    const int rank = meshcoll_rank(mesh);
    const int64_t wanted = PIECES * (PIECES - 1) / 2;
    int64_t sum = 0;
    int status = rank == 0 ? hand_out(mesh) : work(mesh, &sum);
    const long long mine = sum;
    if (!status)
        status = check(meshcoll_allreduce(mesh, &sum, &sum, 1, MESHCOLL_INT64, MESHCOLL_SUM),
                       "meshcoll_allreduce");
    if (!status)
        printf("rank %d: %lld of %lld\n", rank, mine, (long long)sum);
    return status || (meshcoll_size(mesh) > 1 && sum != wanted) ? 1 : 0;
}

int main(void)
{
    meshcoll_t *mesh;
    if (check(meshcoll_create_env(NULL, &mesh), "meshcoll_create_env") < 0)
        return 1;
    const int failed = run(mesh);
    meshcoll_destroy(mesh);
    return failed;
}
