/*
 * Rank 0 destroys the meshes of one job by a thread each, at the same time: one of them is the last, whose destroy
 * closes the job, for which the other ranks wait. Ranks are threads. A hang is a failure.
 */
#define _GNU_SOURCE
#include "meeting.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { MESHES = 3, ROUNDS = 4, PAUSE_NS = 2000 * 1000, PATIENCE_S = 30 };

static atomic_bool pauses;

#ifndef __SANITIZE_THREAD__ /* it has a function of its own */
/* After each unlock the other threads go on: they come between any two steps under the lock. */
int pthread_mutex_unlock(pthread_mutex_t *lock)
{
    static int (*unlock)(pthread_mutex_t *);
    if (!unlock)
        *(void **)&unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    const int error = unlock(lock);
    if (pauses)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    return error;
}
#endif

typedef struct {
    seat_t seat;
    pthread_barrier_t all;
    meshcoll_t *mesh[MESHES];
    atomic_int next; /* mesh to destroy */
} rank_t;

static void *destroy(void *argument)
{
    rank_t *const r = argument;
    meshcoll_t *const mesh = r->mesh[r->next++];
    pthread_barrier_wait(&r->all);
    meshcoll_destroy(mesh);
    return NULL;
}

static void *run_rank(void *argument)
{
    rank_t *const r = argument;
    pthread_t thread[MESHES];
    pthread_barrier_init(&r->all, NULL, MESHES);
    for (int round = 0; round < ROUNDS; round++) {
        r->next = 0;
        for (int m = 0; m < MESHES; m++)
            r->mesh[m] = open_mesh(&r->seat, "gpu=4", "gpu=shm");
        for (int m = 0; m < MESHES; m++)
            check(meshcoll_barrier(r->mesh[m]) == MESHCOLL_OK, "barrier");
        pthread_barrier_wait(&meeting.barrier);
        pauses = true;
        for (int m = 0; m < MESHES && r->seat.rank > 0; m++)
            meshcoll_destroy(r->mesh[m]);
        for (int m = 0; m < MESHES && r->seat.rank == 0; m++)
            check(pthread_create(&thread[m], NULL, destroy, r) == 0, "a thread");
        for (int m = 0; m < MESHES && r->seat.rank == 0; m++)
            pthread_join(thread[m], NULL);
        pthread_barrier_wait(&meeting.barrier);
        pauses = false;
        pthread_barrier_wait(&meeting.barrier);
    }
    pthread_barrier_destroy(&r->all);
    return NULL;
}

int main(void)
{
    static const threading_t mode[] = {{"none", "multiple"}, {"thread", "multiple"}};
    static rank_t rank[RANKS];
    alarm(PATIENCE_S);
    run_modes(mode, sizeof mode / sizeof mode[0], rank, sizeof *rank, run_rank);
    return 0;
}
