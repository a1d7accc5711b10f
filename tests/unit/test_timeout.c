/*
 * Ranks are processes of one machine. One makes no call, is stopped, or comes when all others have ended: they have
 * failed by their time limit, not before it, and name it. How soon behind it is for tests/faults to judge, which runs alone.
 */
#include "base/base.h"
#include "support/processes.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, COUNT = 1 << 16, LIMIT_S = 1, PATIENCE_S = 20 };
/* Nothing is to be shown in time where sanitizers and other tests share the cores. */
enum { NAP_US = 1000 };
enum { LONG_COUNT = 16 << 20, INSIDE_US = 100000 };

/* IS_STOPPED_INSIDE: in the middle of a call in which it moves long messages with those that receive them. */
typedef enum { CALLS_NOT, IS_STOPPED, IS_STOPPED_INSIDE, IS_LATE, SENDS_NOT, IN_TEST } odd_t;

typedef struct {
    mc_meeting_t meeting;
    _Atomic int entered, ended;
    int status[RANKS];
    double seconds[RANKS]; /* of the call that failed */
    char why[RANKS][512];
} world_t;

typedef struct {
    const char *mesh, *transports;
    odd_t odd;            /* what the last rank does */
    const char *strategy; /* of allreduce; NULL: each rank waits for each */
} case_t;

static int open_mesh(const case_t *c, mc_seat_t *seat, meshcoll_t **mesh)
{
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = c->mesh,
                                      .links = "uniform",
                                      .transports = c->transports,
                                      .timeout = "1"};
    return meshcoll_create_oob(&oob, &params, mesh);
}

static int test_until_ended(meshcoll_t *mesh, const float *in, float *out)
{
    meshcoll_request_t *r;
    int status = meshcoll_iallreduce(mesh, in, out, COUNT, MESHCOLL_FLOAT32, MESHCOLL_SUM, &r);
    if (status)
        return status;
    while ((status = meshcoll_test(r)) == MESHCOLL_IN_PROGRESS)
        usleep(NAP_US);
    return status;
}

static int broadcast_until_ended(meshcoll_t *mesh)
{
    float *const vector = calloc(LONG_COUNT, sizeof *vector);
    int status = vector ? MESHCOLL_OK : MESHCOLL_ERR_NO_MEMORY;
    while (!status)
        status = meshcoll_bcast(mesh, vector, vector, LONG_COUNT, MESHCOLL_FLOAT32, RANKS - 1);
    return status; /* the vector stays until the mesh is destroyed */
}

static int call(const case_t *c, meshcoll_t *mesh, const float *in, float *out)
{
    if (c->odd == IS_STOPPED_INSIDE)
        return broadcast_until_ended(mesh);
    if (c->odd == SENDS_NOT)
        return meshcoll_recv(mesh, out, COUNT, MESHCOLL_FLOAT32, RANKS - 1, 1, NULL);
    if (c->odd == IN_TEST)
        return test_until_ended(mesh, in, out);
    return meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_FLOAT32, MESHCOLL_SUM);
}

static int warm_up(meshcoll_t *mesh, const float *in, float *out)
{
    int status = MESHCOLL_OK;
    for (int i = 0; i < 3 && !status; i++)
        status = meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    return status;
}

static void run(const case_t *c, mc_seat_t *seat, world_t *w)
{
    static float in[COUNT], out[COUNT];
    const int rank = seat->rank;
    meshcoll_t *mesh;
    int status = open_mesh(c, seat, &mesh);
    if (!status)
        status = warm_up(mesh, in, out);
    atomic_fetch_add(&w->entered, 1);
    const bool odd = rank == RANKS - 1;
    if (odd && c->odd == IS_LATE)
        while (atomic_load(&w->ended) < RANKS - 1)
            usleep(NAP_US);
    else if (odd && c->odd != IS_STOPPED_INSIDE)
        for (;;)
            pause();
    const double before = mc_now();
    if (!status)
        status = call(c, mesh, in, out);
    if (!status && odd) /* what the others had sent may have been all it needed */
        status = call(c, mesh, in, out);
    w->seconds[rank] = mc_now() - before;
    w->status[rank] = status;
    snprintf(w->why[rank], sizeof w->why[0], "%s", meshcoll_last_error());
    if (c->odd == IS_STOPPED_INSIDE)
        meshcoll_destroy(mesh); /* while it is stopped */
    atomic_fetch_add(&w->ended, 1);
    for (;;)
        pause(); /* its memory stays, as in a program that cleans up */
}

static void wait_for(_Atomic int *count, int n)
{
    const double until = mc_now() + PATIENCE_S;
    while (atomic_load(count) < n && mc_now() < until)
        usleep(NAP_US);
    cr_expect_eq(atomic_load(count), n);
}

/* A rank of the same box may be told by another one that has waited as long. */
static void judge(const case_t *c, const world_t *w)
{
    char name[16];
    snprintf(name, sizeof name, "rank %d", RANKS - 1);
    for (int r = 0; r < RANKS - 1; r++) {
        cr_expect(w->status[r] == MESHCOLL_ERR_TIMEOUT || w->status[r] == MESHCOLL_ERR_TRANSPORT,
                  "rank %d: %d, %s", r, w->status[r], w->why[r]);
        cr_expect(strstr(w->why[r], name) && strstr(w->why[r], "time limit of 1 s"), "rank %d: %s",
                  r, w->why[r]);
        cr_expect_geq(w->seconds[r], LIMIT_S / 2.0, "rank %d, case %d: after %g s", r, (int)c->odd,
                      w->seconds[r]);
    }
}

static void run_all(const case_t *c)
{
    world_t *const w = mc_processes_share(sizeof *w);
    pid_t pid[RANKS];
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    setenv("MESHCOLL_STRATEGY_ALLREDUCE", c->strategy ? c->strategy : "flat-fullmesh", 1);
    mc_meeting_init(&w->meeting, RANKS);
    for (int r = 0; r < RANKS; r++) {
        pid[r] = fork();
        cr_assert_geq(pid[r], 0);
        if (pid[r] == 0)
            run(c, &(mc_seat_t){&w->meeting, r}, w);
    }
    wait_for(&w->entered, RANKS);
    if (c->odd == IS_STOPPED_INSIDE)
        usleep(INSIDE_US);
    if (c->odd == IS_STOPPED || c->odd == IS_STOPPED_INSIDE)
        kill(pid[RANKS - 1], SIGSTOP);
    wait_for(&w->ended, c->odd == IS_LATE ? RANKS : RANKS - 1);
    for (int r = 0; r < RANKS; r++)
        kill(pid[r], SIGKILL);
    for (int r = 0; r < RANKS; r++)
        waitpid(pid[r], NULL, 0);
    judge(c, w);
    if (c->odd == IS_LATE)
        cr_expect_neq(w->status[RANKS - 1], MESHCOLL_OK);
    munmap(w, sizeof *w);
}

static void run_wires(odd_t odd)
{
    run_all(&(case_t){"gpu=3", "gpu=shm", odd, NULL});
    run_all(&(case_t){"gpu=3", "gpu=tcp,self", odd, NULL});
}

Test(timeout, a_rank_that_makes_no_call)
{
    run_wires(CALLS_NOT);
}

Test(timeout, a_rank_that_is_stopped)
{
    run_wires(IS_STOPPED);
}

/* Neither the call nor the end of the mesh waits for it for longer than calls may take. */
Test(timeout, a_rank_that_is_stopped_inside)
{
    setenv("MESHCOLL_STRATEGY_BCAST", "flat-star", 1);
    run_all(&(case_t){"gpu=3", "gpu=shm", IS_STOPPED_INSIDE, NULL});
}

Test(timeout, a_rank_that_is_late)
{
    run_all(&(case_t){"gpu=3", "gpu=shm", IS_LATE, NULL});
}

Test(timeout, a_rank_that_sends_no_message)
{
    run_wires(SENDS_NOT);
}

Test(timeout, in_a_loop_that_tests)
{
    run_wires(IN_TEST);
}

/* Rank 0 waits for rank 1, which waits for rank 2. */
Test(timeout, names_the_end_of_a_chain_of_waits)
{
    static const char chain[] = "reduce:chain(gpu) bcast:chain(gpu)";
    run_all(&(case_t){"gpu=3", "gpu=shm", CALLS_NOT, chain});
    run_all(&(case_t){"gpu=3", "gpu=shm", IS_STOPPED, chain});
    run_all(&(case_t){"gpu=3", "gpu=tcp,self", CALLS_NOT, chain});
}
