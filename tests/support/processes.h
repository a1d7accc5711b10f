/* Ranks that are processes of one machine: an out-of-band allgather for them, in memory that all share. */
#ifndef MC_TEST_PROCESSES_H
#define MC_TEST_PROCESSES_H

#include <meshcoll/meshcoll.h>

#include <pthread.h>
#include <stddef.h>
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
/* Waits for one. 0: it ended well; n: with this exit status; -n: by signal n. */
int mc_process_await(pid_t pid);

#endif
