/* Ranks that are processes of one machine: an out-of-band allgather for them, in memory that all share. */
#ifndef MC_TEST_PROCESSES_H
#define MC_TEST_PROCESSES_H

#include <meshcoll/meshcoll.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum { MC_PROCESSES = 8, MC_PROCESS_TOLD = 4096 };

typedef struct {
    pthread_barrier_t barrier;
    int size;
    char told[MC_PROCESSES][MC_PROCESS_TOLD];
} mc_meeting_t;

typedef struct {
    mc_meeting_t *meeting;
    int rank;
} mc_seat_t;

/* Zeroed memory that processes forked from now on share; it ends with munmap(). */
void *mc_processes_share(size_t bytes);
/* In such memory. */
void mc_meeting_init(mc_meeting_t *meeting, int size);
/* `seat` stays with the mesh. */
meshcoll_oob_t mc_seat_oob(mc_seat_t *seat);

/* Forks the ranks of a meeting, which end with the status that `run` returns. */
void mc_processes_fork(mc_meeting_t *meeting, int (*run)(const void *context, mc_seat_t *seat),
                       const void *context, pid_t *pid);
/* Runs so many ranks to their end. Returns the status of the first that did not end well, as mc_process_await does. */
int mc_processes_run(int size, int (*run)(const void *context, mc_seat_t *seat),
                     const void *context);
/* Waits for one. 0: it ended well; n: with this exit status; -n: by signal n. */
int mc_process_await(pid_t pid);

/* In what a rank runs: ends it with the line of the check that failed. */
#define CHECK(is)                                                                    \
    do {                                                                             \
        if (!(is)) {                                                                 \
            fprintf(stderr, "rank %d, line %d: %s; %s\n", seat->rank, __LINE__, #is, \
                    meshcoll_last_error());                                          \
            return __LINE__ % 255 ? __LINE__ % 255 : 255;                            \
        }                                                                            \
    } while (0)

/* Is the sum over all ranks right on a mesh, each of which gives its number from 1 on times a factor? */
bool mc_mesh_adds_up(meshcoll_t *mesh, float factor);

#endif
