/* The ranks that are left of a mesh go on with a mesh of their own. Ranks are processes. */
#include "support/processes.h"

#include <meshcoll/meshcoll.h>

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 5, COUNT = 1000, WITHIN_SECONDS = 20, LIMIT_SECONDS = 60 };

typedef struct {
    const char *transports;
    bool killed[RANKS];
    int aborts; /* this rank, if nobody is killed */
} case_t;

static int n_left(const case_t *c)
{
    int n = 0;
    for (int r = 0; r < RANKS; r++)
        n += !c->killed[r];
    return n;
}

static int sum(meshcoll_t *mesh, float *result)
{
    static float in[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; i++)
        in[i] = 1;
    const int status = meshcoll_allreduce(mesh, in, out, COUNT, MESHCOLL_FLOAT32, MESHCOLL_SUM);
    *result = out[COUNT - 1];
    return status;
}

/* Goes on until the mesh fails. */
static void run_into_failure(const case_t *c, int rank, meshcoll_t *mesh)
{
    float result;
    if (c->killed[rank])
        raise(SIGKILL);
    if (n_left(c) == RANKS && rank == c->aborts)
        meshcoll_abort(mesh, "enough");
    while (sum(mesh, &result) == MESHCOLL_OK) {}
}

static int go_on(const case_t *c, int rank, meshcoll_t *mesh)
{
    const meshcoll_params_t params = {.size = sizeof params,
                                      .links = "uniform",
                                      .transports = c->transports ? "gpu=tcp,self" : NULL};
    meshcoll_t *rest;
    float result;
    int before = 0;
    for (int r = 0; r < rank; r++)
        before += !c->killed[r];
    if (meshcoll_shrink(mesh, WITHIN_SECONDS, &params, &rest)) {
        fprintf(stderr, "rank %d: %s\n", rank, meshcoll_last_error());
        return 3;
    }
    meshcoll_destroy(mesh);
    if (meshcoll_size(rest) != n_left(c) || meshcoll_rank(rest) != before)
        return 4;
    if (sum(rest, &result) || result != (float)n_left(c))
        return 5;
    meshcoll_destroy(rest);
    return 0;
}

static int run(const void *context, mc_seat_t *seat)
{
    const case_t *const c = context;
    meshcoll_t *mesh;
    float result;
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    const meshcoll_params_t params = {
        .size = sizeof params, .mesh = "gpu=5", .links = "uniform", .transports = c->transports};
    alarm(LIMIT_SECONDS);
    if (meshcoll_create_oob(&oob, &params, &mesh) || sum(mesh, &result))
        return 1;
    run_into_failure(c, seat->rank, mesh);
    return go_on(c, seat->rank, mesh);
}

static void expect_survival(const case_t *c)
{
    pid_t pid[RANKS];
    mc_meeting_t *const meeting = mc_processes_share(sizeof *meeting);
    mc_meeting_init(meeting, RANKS);
    mc_processes_fork(meeting, run, c, pid);
    for (int r = 0; r < RANKS; r++)
        cr_expect_eq(mc_process_await(pid[r]), c->killed[r] ? -SIGKILL : 0, "rank %d", r);
}

Test(shrink, without_one, .timeout = 120)
{
    expect_survival(&(case_t){.killed = {[2] = true}});
}

Test(shrink, without_rank_0_and_another, .timeout = 120)
{
    expect_survival(&(case_t){.killed = {[0] = true, [3] = true}});
    expect_survival(&(case_t){.transports = "gpu=tcp,self", .killed = {[0] = true, [3] = true}});
}

Test(shrink, one_alone, .timeout = 120)
{
    expect_survival(&(case_t){.killed = {true, true, true, true, false}});
}

Test(shrink, after_an_abort_all_go_on, .timeout = 120)
{
    expect_survival(&(case_t){.aborts = 3});
}
