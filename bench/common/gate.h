/*
 * A start line and a clock for ranks on one kernel, the same whatever library is timed.
 *
 * An MPI library's barrier lets ranks go one by one, each library in its own way, and where ranks share
 * cores a late one finds its data there: what is sent from one root then seems to take no time. Here
 * all wait asleep, without a core, and time counts from one moment for all: when they were let go. Waking
 * up is in the times.
 *
 * In one box ranks wait awake, for some 0.2 ms, and yield between looks where they share cores: system calls would be
 * half of what an operation of a microsecond takes on cores of its own; and where more ranks than cores sleep, a core
 * falls asleep too, and waking that one up takes 25 us on a virtual machine, whatever the operation.
 *
 * Nor does it reward a slow barrier: while a library is at it, a shaped network saves up what it will let
 * pass above its rate. So where ranks are in several boxes nobody is let go until half a millisecond after
 * the slowest rank's end, in which a barrier fits unless the machine is busy or the library slow; what follows one
 * that took longer can be left out (gate_late). In one box there is no pause: nothing saves up there, and idle cores would
 * fall asleep.
 */
#ifndef BENCH_GATE_H
#define BENCH_GATE_H

#include <stdbool.h>

enum { GATE_WHY = 512 };

typedef struct gate gate_t;

/*
 * Of all ranks of MPI_COMM_WORLD, which all call. `path` must not exist and be in a folder that all
 * ranks share; the file is gone again on return. False where it cannot be had, for instance with ranks
 * on several kernels: `why` says so, the same on all ranks, and *gate is not set.
 */
bool gate_open(const char *path, gate_t **gate, char why[GATE_WHY]);

/*
 * Waits until all ranks are here. The moment all were let go, in seconds of CLOCK_MONOTONIC, the same on
 * all ranks. What MPI still had to send must have been received before: call MPI_Barrier first.
 */
double gate_pass(gate_t *gate);

/* The rank is through the barrier at this moment of CLOCK_MONOTONIC; before gate_pass. */
void gate_met(gate_t *gate, double moment);

/* Was some rank not through the barrier until the pause was over? Then the network has saved up more than after others, and the
 * operation should not count. On all ranks the same, from one gate_pass to the next. */
bool gate_late(const gate_t *gate);

/* The rank's last operation was over at this moment of CLOCK_MONOTONIC; before the barrier. */
void gate_leave(gate_t *gate, double ended);

/* From the last end to the next turn, at least; on all ranks the same. gate_open sets it by where ranks are. */
void gate_set_pause(gate_t *gate, double seconds);

void gate_close(gate_t *gate); /* NULL: nothing */

#endif
