/*
 * A start gate and a common clock for ranks on one kernel, independent of the library that is
 * timed.
 *
 * A barrier of an MPI library releases ranks one by one, each library in its own way. On
 * oversubscribed cores a late rank then finds its data already delivered, and an operation from
 * one root seems to cost nothing. At the gate all ranks block without using a core, and time
 * counts from one moment for all: their release. Times include the wake-up.
 *
 * In one box ranks poll for about 0.2 ms, and yield between polls on oversubscribed cores: system
 * calls would take half as long as an operation of a microsecond. Where more ranks than cores
 * block, cores become idle too, and waking one takes 25 us on a virtual machine.
 *
 * A slow barrier gets no advantage: during a barrier a traffic shaper collects credit for a burst.
 * Where ranks are in several boxes they are therefore released no earlier than half a millisecond
 * after the slowest rank ended. A barrier fits into that unless the machine is busy or the library
 * slow; iterations after a longer one can be left out (gate_late). In one box there is no such
 * pause: no credit accumulates there, and idle cores would sleep.
 */
#ifndef BENCH_GATE_H
#define BENCH_GATE_H

#include <stdbool.h>
#include <stddef.h>

enum { GATE_WHY = 512 };

typedef struct gate gate_t;

/* The ranks, and how they talk before the gate is open. */
typedef struct {
    int rank, size;
    void *context;
    /* Gathers `bytes` bytes of each rank, by rank; ends the program where it cannot. */
    void (*allgather)(void *context, const void *in, void *out, size_t bytes);
    /* What a blocked rank calls from time to time, so that a library completes what a peer in its barrier still waits
     * for, such as a connection. NULL: nothing. */
    void (*poll)(void *context);
} gate_ranks_t;

/* Collective over the ranks. `path` must not exist and must be in a folder that all ranks
 * share; the file is removed on return. Returns false where no gate can be created, for instance
 * with ranks on several kernels. Then `why` has the reason, the same on all ranks, and *gate is
 * not set. */
bool gate_open(const gate_ranks_t *ranks, const char *path, gate_t **gate, char why[GATE_WHY]);

/* Waits for all ranks. Returns the time of the release in seconds of CLOCK_MONOTONIC, the same
 * on all ranks. Call a barrier first. */
double gate_pass(gate_t *gate);

/* Records when the rank left the barrier, in CLOCK_MONOTONIC; call it before gate_pass. */
void gate_met(gate_t *gate, double moment);

/* Did some rank leave the barrier after the end of the pause? Then the shaper has collected more
 * credit than in other iterations, and the operation should not count. The same on all ranks
 * from one gate_pass to the next. */
bool gate_late(const gate_t *gate);

/* Records when the rank's last operation ended, in CLOCK_MONOTONIC; call it before the barrier. */
void gate_leave(gate_t *gate, double ended);

/* The least time from the last end to the next release, the same on all ranks. gate_open sets a
 * default that depends on where the ranks are. */
void gate_set_pause(gate_t *gate, double seconds);

void gate_close(gate_t *gate); /* NULL: nothing */

#endif
