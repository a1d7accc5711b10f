/* bench/common/gate.h: nobody goes before all have come, all have one moment, and waiting takes no core. */
#include "common/gate_mpi.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 300, LATE_EVERY = 50, LATE_US = 25000 };

static int rank, size;

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Rank 0 names a file that all ranks of this machine can open. */
static void name_file(char path[64])
{
    snprintf(path, 64, "/tmp/meshcoll-gate-%ld", (long)getpid());
    MPI_Bcast(path, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
}

/* Every rank in turn comes late, later than the gate's sleepers look around; others do not spin. */
static void test_turns(gate_t *gate)
{
    for (int turn = 0; turn < TURNS; turn++) {
        const int late = turn % LATE_EVERY == 0, mine = turn / LATE_EVERY % size == rank;
        if (late && mine)
            usleep(LATE_US);
        const double arrived = seconds(CLOCK_MONOTONIC);
        const double busy = seconds(CLOCK_THREAD_CPUTIME_ID);
        const double released = gate_pass(gate);
        const double spent = seconds(CLOCK_THREAD_CPUTIME_ID) - busy;
        check(released <= seconds(CLOCK_MONOTONIC), "went before it was let go");
        if (late && !mine)
            check(spent < 0.5e-6 * LATE_US, "took a core while it waited");

        double last, least, most;
        MPI_Allreduce(&arrived, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&released, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&released, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        check(released >= last, "let go before all had come");
        check(least == most, "ranks have different moments");
    }
}

/* Half a millisecond after the last one's end, whoever that is. */
static void test_pause(gate_t *gate)
{
    gate_set_pause(gate, 0.5e-3);
    for (int turn = 0; turn < TURNS; turn++) {
        const double ended = seconds(CLOCK_MONOTONIC) + (turn % size == rank ? 2e-3 : 0);
        double last;
        gate_leave(gate, ended);
        MPI_Allreduce(&ended, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        check(gate_pass(gate) >= last + 0.5e-3 - 1e-8, "let go too soon");
    }
}

/* One rank's barrier that outlasts the pause makes it late for all. */
static void test_late(gate_t *gate)
{
    gate_set_pause(gate, 0.5e-3);
    for (int turn = 0; turn < TURNS; turn++) {
        const bool late = turn % LATE_EVERY == 0;
        double ended = seconds(CLOCK_MONOTONIC);
        MPI_Allreduce(MPI_IN_PLACE, &ended, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        gate_leave(gate, ended);
        gate_met(gate, ended + (late && turn / LATE_EVERY % size == rank ? 0.6e-3 : 0.4e-3));
        gate_pass(gate);
        check(gate_late(gate) == late, "a barrier was taken for what it was not");
        usleep(1000); /* the next one's moments come after these */
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* All ranks are told the same. */
static void test_refusal(const char *path, const char *reason)
{
    char why[GATE_WHY], first[GATE_WHY];
    gate_t *gate = NULL;
    check(!gate_open_mpi(path, &gate, why), "opened what it should refuse");
    check(!gate, "an output was set");
    check(strstr(why, reason) != NULL, why);
    memcpy(first, why, sizeof first);
    MPI_Bcast(first, GATE_WHY, MPI_CHAR, 0, MPI_COMM_WORLD);
    check(strcmp(first, why) == 0, "ranks were told different reasons");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char path[64], why[GATE_WHY];
    name_file(path);

    gate_t *gate;
    check(gate_open_mpi(path, &gate, why), why);
    check(access(path, F_OK) != 0, "the file is still there");
    test_turns(gate);
    test_pause(gate);
    test_late(gate);
    gate_close(gate);
    gate_close(NULL);

    test_refusal("/nowhere/at/all", "No such file");
    if (rank == 0)
        fclose(fopen(path, "w"));
    test_refusal(path, "File exists");
    if (rank == 0) {
        check(access(path, F_OK) == 0, "somebody's file was removed");
        unlink(path);
    }
    /* rank 0 makes it where the others do not look */
    test_refusal(rank == 0 || size == 1 ? path : "/tmp/meshcoll-gate-elsewhere",
                 "one file for all ranks");
    check(access(path, F_OK) != 0, "the file of a refusal is still there");
    MPI_Finalize();
    return 0;
}
