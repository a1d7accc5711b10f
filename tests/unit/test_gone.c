/* Ranks are processes of one machine; one is killed, and the others wait for it: they are told who is gone. */
#include "support/processes.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 3, KILLED = 2, LARGE = 1 << 20, SECONDS = 20 };

typedef struct {
    const char *transports, *progress, *threads;
    int (*call)(meshcoll_t *mesh, float *in, float *out);
    int waits[RANKS]; /* for the one that is killed */
} case_t;

static int sum(meshcoll_t *mesh, float *in, float *out)
{
    return meshcoll_allreduce(mesh, in, out, 2, MESHCOLL_FLOAT32, MESHCOLL_SUM);
}

static int sum_by_tests(meshcoll_t *mesh, float *in, float *out)
{
    meshcoll_request_t *request;
    int status = meshcoll_iallreduce(mesh, in, out, 2, MESHCOLL_FLOAT32, MESHCOLL_SUM, &request);
    while (!status && (status = meshcoll_test(request)) == MESHCOLL_IN_PROGRESS)
        status = MESHCOLL_OK;
    return status;
}

static int sum_by_testany(meshcoll_t *mesh, float *in, float *out)
{
    meshcoll_request_t *request;
    int which,
        status = meshcoll_iallreduce(mesh, in, out, 2, MESHCOLL_FLOAT32, MESHCOLL_SUM, &request);
    while (!status && (status = meshcoll_testany(1, &request, &which)) == MESHCOLL_IN_PROGRESS)
        status = MESHCOLL_OK;
    return status;
}

/* The root waits until its message is read. */
static int scatter(meshcoll_t *mesh, float *in, float *out)
{
    return meshcoll_scatter(mesh, in, out, LARGE, MESHCOLL_FLOAT32, 0);
}

enum { TAG = 4, ANSWER = 5 };

/* The one that is killed sends to all, and awaits their answers so that its messages have come. */
static int receive_from(meshcoll_t *mesh, float *in, int source)
{
    int status = MESHCOLL_OK;
    if (meshcoll_rank(mesh) != KILLED) {
        status = meshcoll_recv(mesh, in, 2, MESHCOLL_FLOAT32, source, TAG, NULL);
        return status ? status : meshcoll_send(mesh, in, 2, MESHCOLL_FLOAT32, KILLED, ANSWER);
    }
    for (int r = 0; r < KILLED && !status; r++)
        status = meshcoll_send(mesh, in, 2, MESHCOLL_FLOAT32, r, TAG);
    for (int r = 0; r < KILLED && !status; r++)
        status = meshcoll_recv(mesh, in, 2, MESHCOLL_FLOAT32, r, ANSWER, NULL);
    return status;
}

static int receive(meshcoll_t *mesh, float *in, float *out)
{
    (void)out;
    return receive_from(mesh, in, KILLED);
}

static int receive_any(meshcoll_t *mesh, float *in, float *out)
{
    (void)out;
    return receive_from(mesh, in, MESHCOLL_ANY_SOURCE);
}

/* Too large to be sent before it is received. */
static int send_large(meshcoll_t *mesh, float *in, float *out)
{
    int status = MESHCOLL_OK;
    if (meshcoll_rank(mesh) != KILLED)
        return meshcoll_send(mesh, in, LARGE, MESHCOLL_FLOAT32, KILLED, TAG);
    for (int r = 0; r < KILLED && !status; r++)
        status = meshcoll_recv(mesh, out, LARGE, MESHCOLL_FLOAT32, r, TAG, NULL);
    return status;
}

/* What a rank exits with: 0 where all went as it should. */
static int run(const void *context, mc_seat_t *seat)
{
    const case_t *const c = context;
    static float in[RANKS * LARGE], out[LARGE];
    meshcoll_t *mesh;
    const meshcoll_oob_t oob = mc_seat_oob(seat);
    const meshcoll_params_t params = {.size = sizeof params,
                                      .mesh = "gpu=3",
                                      .links = "uniform",
                                      .transports = c->transports,
                                      .progress = c->progress,
                                      .threads = c->threads};
    alarm(SECONDS);
    if (meshcoll_create_oob(&oob, &params, &mesh) ||
        meshcoll_set_strategy(mesh, MESHCOLL_ALLREDUCE, "flat-fullmesh") ||
        meshcoll_set_strategy(mesh, MESHCOLL_SCATTER, "scatter:star(gpu)") ||
        c->call(mesh, in, out))
        return 1;
    /* a call can end here and still fail on a rank that is told of this one first */
    char own = 0, all[RANKS];
    if (oob.allgather(oob.context, &own, all, sizeof own))
        return 2;
    if (seat->rank == KILLED)
        raise(SIGKILL);
    const int status = c->call(mesh, in, out);
    if (!c->waits[seat->rank] && status == MESHCOLL_OK) {
        sleep(1); /* its own end without meshcoll_destroy would be a failure, too */
        return 0;
    }
    if (status != MESHCOLL_ERR_PEER || !strstr(meshcoll_last_error(), "rank 2 (process"))
        return 3;
    return c->call(mesh, in, out) == MESHCOLL_ERR_PEER ? 0 : 4; /* the mesh is broken */
}

static void expect_told(const case_t *c)
{
    pid_t pid[RANKS];
    mc_meeting_t *const meeting = mc_processes_share(sizeof *meeting);
    mc_meeting_init(meeting, RANKS);
    mc_processes_fork(meeting, run, c, pid);
    /* the killed one is waited for last: a process that has ended is there until then */
    for (int r = 0; r < RANKS; r++)
        cr_expect_eq(mc_process_await(pid[r]), r == KILLED ? -SIGKILL : 0, "rank %d", r);
    munmap(meeting, sizeof *meeting);
}

static void expect_all_told(const char *transports)
{
    expect_told(&(case_t){.transports = transports, .call = sum, .waits = {1, 1}});
    expect_told(&(case_t){.transports = transports, .call = scatter, .waits = {1, 0}});
    expect_told(&(case_t){.transports = transports, .call = receive, .waits = {1, 1}});
    expect_told(&(case_t){.transports = transports, .call = receive_any, .waits = {1, 1}});
    expect_told(&(case_t){.transports = transports, .call = send_large, .waits = {1, 1}});
}

Test(gone, a_rank_that_waits_is_told)
{
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    expect_all_told("gpu=shm");
    expect_all_told("gpu=shm:copy");
}

Test(gone, threads_that_wait_are_told)
{
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    expect_told(&(case_t){.progress = "thread", .call = sum, .waits = {1, 1}});
    expect_told(&(case_t){.threads = "multiple", .call = sum, .waits = {1, 1}});
}

Test(gone, who_only_tests_is_told)
{
    setenv("MESHCOLL_TUNE_FILE", "/nowhere/links.json", 1);
    expect_told(&(case_t){.call = sum_by_tests, .waits = {1, 1}});
    expect_told(&(case_t){.call = sum_by_testany, .waits = {1, 1}});
}
