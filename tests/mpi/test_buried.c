/* A rank that sleeps while the others go on is not buried by what they send: no process grows by more
 * than 64 MiB. Arguments: seconds of sleep, calls of 1 MiB; 1 and 100 unless given, 2 and 200 in the long form. Prints
 * what the ranks grew by. */
#include <meshcoll/mpi.h>

#include "support/long_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 18, MOST_MIB = 64, MOST_RANKS = 64 };

typedef enum { BCAST, SCATTER, GATHER, REDUCE, PERSISTENT, BEGUN, SMALL, WAYS } way_t;
static const char *const way_name[WAYS] = {"bcast",      "scatter", "gather", "reduce",
                                           "persistent", "begun",   "small"};

static int rank, size, sleeper; /* the last rank */
static meshcoll_t *mesh;
static meshcoll_request_t *persistent;
static float *in, *out;

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s; last error: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* KiB of the most that was resident, shared memory included. */
static long peak(void)
{
    char line[128];
    long kib = 0;
    FILE *const f = fopen("/proc/self/status", "r");
    check(f != NULL, "/proc/self/status");
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    fclose(f);
    return kib;
}

/* The peak is what is resident now. false: the kernel does not offer that. */
static int reset_peak(void)
{
    FILE *const f = fopen("/proc/self/clear_refs", "w");
    if (!f)
        return 0;
    const int written = fputs("5\n", f) >= 0;
    return fclose(f) == 0 && written;
}

/* What is sent flows from a fast rank to the sleeper, or to it from all. */
static int call(way_t way)
{
    meshcoll_request_t *request;
    switch (way) {
    case BCAST:
        return meshcoll_bcast(mesh, in, out, COUNT, MESHCOLL_FLOAT32, 0);
    case SCATTER:
        return meshcoll_scatter(mesh, in, out, COUNT, MESHCOLL_FLOAT32, 0);
    case GATHER:
        return meshcoll_gather(mesh, in, out, COUNT, MESHCOLL_FLOAT32, sleeper);
    case REDUCE:
        return meshcoll_reduce(mesh, in, out, COUNT, MESHCOLL_FLOAT32, MESHCOLL_SUM, sleeper);
    case SMALL: /* each takes more memory than it has bytes */
        for (int i = 0; i < 100; i++)
            check(meshcoll_reduce(mesh, in, out, 2, MESHCOLL_FLOAT32, MESHCOLL_SUM, sleeper) == 0,
                  "a small call");
        return MESHCOLL_OK;
    case BEGUN:
        check(meshcoll_ibcast(mesh, in, out, COUNT, MESHCOLL_FLOAT32, 0, &request) == MESHCOLL_OK,
              "begin");
        return meshcoll_wait(request);
    default:
        check(meshcoll_start(persistent) == MESHCOLL_OK, "start");
        return meshcoll_wait(persistent);
    }
}

static void run(way_t way, int seconds, int calls)
{
    for (int i = 0; i < 40; i++) /* what the calls need anyway */
        check(call(way) == MESHCOLL_OK, "a call");
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, "barrier");
    MPI_Barrier(MPI_COMM_WORLD);
    const int measures = reset_peak();
    const long before = peak();
    if (rank == sleeper)
        sleep((unsigned)seconds);
    for (int i = 0; i < calls; i++)
        check(call(way) == MESHCOLL_OK, "a call");
    check(meshcoll_barrier(mesh) == MESHCOLL_OK, "barrier");
    long grown[MOST_RANKS];
    const long own = measures ? peak() - before : 0;
    MPI_Allgather(&own, 1, MPI_LONG, grown, 1, MPI_LONG, MPI_COMM_WORLD);
    if (rank == 0)
        printf("buried: %s: grown by", way_name[way]);
    for (int r = 0; r < size; r++) {
        if (rank == 0)
            printf(" %.1f", (double)grown[r] / 1024);
        check(grown[r] <= MOST_MIB * 1024L, "a rank grew by more than 64 MiB");
    }
    if (rank == 0)
        printf(" MiB%s\n", measures ? "" : " (not measured)");
}

int main(int argc, char **argv)
{
    const int seconds = argc > 1 ? atoi(argv[1]) : long_form() ? 2 : 1;
    const int calls = argc > 2 ? atoi(argv[2]) : 100 * seconds;
    const char *const only = argc > 3 ? argv[3] : NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sleeper = size - 1;
    in = calloc((size_t)size * COUNT, sizeof *in);
    out = calloc((size_t)size * COUNT, sizeof *out);
    check(in && out && size > 1 && size <= MOST_RANKS, "memory, and some ranks");
    memset(in, 1, (size_t)size * COUNT * sizeof *in);
    memset(out, 1, (size_t)size * COUNT * sizeof *out);
    check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "create");
    check(meshcoll_bcast_init(mesh, in, out, COUNT, MESHCOLL_FLOAT32, 0, &persistent) ==
              MESHCOLL_OK,
          "init");
    for (int way = 0; way < WAYS; way++)
        if (!only || !strcmp(only, way_name[way]))
            run((way_t)way, seconds, calls);
    meshcoll_free(persistent);
    meshcoll_destroy(mesh);
    MPI_Finalize();
    return 0;
}
