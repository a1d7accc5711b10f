/* Ranks that are threads: how they meet, and run in one mode after another. */
#ifndef MC_TEST_MEETING_H
#define MC_TEST_MEETING_H

#include <meshcoll/meshcoll.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4 };

typedef struct {
    pthread_barrier_t barrier;
    const void *in[RANKS];
} meeting_t;

static meeting_t meeting;

typedef struct {
    const char *progress, *threads;
} threading_t;

/* What a test knows of a rank begins with this. */
typedef struct {
    int rank;
    threading_t mode;
} seat_t;

static int allgather(void *context, const void *in, void *out, size_t bytes)
{
    const seat_t *const seat = context;
    meeting.in[seat->rank] = in;
    pthread_barrier_wait(&meeting.barrier);
    for (int r = 0; r < RANKS; r++)
        memcpy((char *)out + (size_t)r * bytes, meeting.in[r], bytes);
    pthread_barrier_wait(&meeting.barrier);
    return 0;
}

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s; last error: %s\n", what, meshcoll_last_error());
    _exit(1);
}

static meshcoll_t *open_mesh(seat_t *seat, const char *text, const char *transports)
{
    meshcoll_t *mesh = NULL;
    const meshcoll_oob_t oob = {
        .rank = seat->rank, .size = RANKS, .context = seat, .allgather = allgather};
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = text,
                                      .transports = transports,
                                      .links = "uniform",
                                      .progress = seat->mode.progress,
                                      .threads = seat->mode.threads};
    check(meshcoll_create_oob(&oob, &params, &mesh) == MESHCOLL_OK, "create");
    return mesh;
}

/* `rank`: RANKS of `bytes` bytes each. */
static void run_world(const threading_t *mode, void *rank, size_t bytes, void *(*run)(void *))
{
    pthread_t thread[RANKS];
    memset(rank, 0, RANKS * bytes);
    for (int r = 0; r < RANKS; r++) {
        seat_t *const seat = (void *)((char *)rank + (size_t)r * bytes);
        *seat = (seat_t){r, *mode};
        check(pthread_create(&thread[r], NULL, run, seat) == 0, "a thread");
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(thread[r], NULL);
    printf("progress %s, threads %s: ok\n", mode->progress, mode->threads);
}

static void run_modes(const threading_t *mode, size_t n, void *rank, size_t bytes,
                      void *(*run)(void *))
{
    setenv("MESHCOLL_TUNE_FILE", "/dev/null", 1);
    check(pthread_barrier_init(&meeting.barrier, NULL, RANKS) == 0, "a barrier");
    for (size_t i = 0; i < n; i++)
        run_world(&mode[i], rank, bytes, run);
    pthread_barrier_destroy(&meeting.barrier);
}

#endif
