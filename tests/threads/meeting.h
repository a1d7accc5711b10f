/* How ranks that are threads meet: out-of-band exchange for tests of threads. */
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
    int rank;
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

typedef struct {
    const char *progress, *threads;
} threading_t;

#endif
