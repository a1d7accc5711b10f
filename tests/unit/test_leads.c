/* Runs wait for the barriers of earlier epochs, whatever else completes. All ranks are in this process. */
#include "runtime/handle/run.h"
#include "runtime/progress/progress.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <string.h>

enum { RANKS = 3, COUNT = 1 << 18, CALLS = 60, MOST_TURNS = 1000000, TURNS = 200 };

static meshcoll_t *rank[RANKS];
static float data[RANKS][COUNT];
static meshcoll_request_t *request[RANKS][CALLS];

static void world_open(void)
{
    cr_assert_eq(mc_inproc_create("gpu=3", NULL, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    memset(request, 0, sizeof request);
}

static void world_close(void)
{
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
}

static void begin(int r, int i)
{
    cr_assert_eq(
        meshcoll_ibcast(rank[r], data[r], data[r], COUNT, MESHCOLL_FLOAT32, 0, &request[r][i]),
        MESHCOLL_OK, "%s", meshcoll_last_error());
}

static int n_pending(const meshcoll_t *h)
{
    int n = 0;
    for (const meshcoll_request_t *r = mc_request_in_flight(h->job->requests.running.first); r;
         r = mc_request_next(r))
        n += r->kind->is_run && mc_run_of(r)->executor.state == MC_PENDING && !r->kind->is_internal;
    return n;
}

static void turn(void)
{
    for (int r = 0; r < RANKS; r++)
        (void)mc_job_progress(rank[r]->job);
}

static void finish(int calls)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < calls; i++) {
            int status;
            for (int n = 0; (status = meshcoll_test(request[r][i])) == MESHCOLL_IN_PROGRESS; n++) {
                cr_assert_lt(n, MOST_TURNS, "hangs");
                turn();
            }
            cr_assert_eq(status, MESHCOLL_OK, "%s", meshcoll_last_error());
        }
}

/* Of 60 broadcasts of 1 MiB the first two epochs of 8 start; then others begin as many calls, and so on. */
Test(leads, two_epochs_start_alone)
{
    const int epoch = (int)(MC_LEAD_EPOCH / (int64_t)sizeof data[0]);
    world_open();
    for (int i = 0; i < CALLS; i++)
        begin(0, i);
    for (int n = 0; n < TURNS; n++)
        turn();
    cr_expect_eq(n_pending(rank[0]), CALLS - 2 * epoch);
    cr_expect(rank[0]->leads.calls.blocked);
    for (int r = 1; r < RANKS; r++)
        for (int i = 0; i < epoch; i++)
            begin(r, i);
    for (int n = 0; n < TURNS; n++)
        turn();
    cr_expect_eq(n_pending(rank[0]), CALLS - 2 * epoch,
                 "the others have not begun the first barrier");
    for (int r = 1; r < RANKS; r++)
        begin(r, epoch);
    for (int n = 0; n < TURNS; n++)
        turn();
    cr_expect_eq(n_pending(rank[0]), CALLS - 3 * epoch);
    for (int r = 1; r < RANKS; r++)
        for (int i = epoch + 1; i < CALLS; i++)
            begin(r, i);
    finish(CALLS);
    for (int r = 0; r < RANKS; r++)
        cr_expect_eq(rank[r]->leads.calls.epoch, rank[0]->leads.calls.epoch);
    world_close();
}

/* Each has its own epochs, and ranks may start them in any order. */
Test(leads, persistent_requests_count_for_themselves)
{
    enum { REQUESTS = 3, ROUNDS = 40 };
    meshcoll_request_t *p[RANKS][REQUESTS];
    static float own[RANKS][REQUESTS][COUNT];
    world_open();
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < REQUESTS; i++) {
            own[r][i][COUNT - 1] = r ? 0 : (float)i + 1;
            cr_assert_eq(meshcoll_bcast_init(rank[r], own[r][i], own[r][i], COUNT, MESHCOLL_FLOAT32,
                                             0, &p[r][i]),
                         MESHCOLL_OK);
        }
    for (int round = 0; round < ROUNDS; round++) {
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < REQUESTS; i++)
                cr_assert_eq(meshcoll_start(p[r][(i + r) % REQUESTS]), MESHCOLL_OK, "%s",
                             meshcoll_last_error());
        for (int left = RANKS * REQUESTS, n = 0; left > 0; n++) {
            cr_assert_lt(n, MOST_TURNS, "hangs");
            turn();
            left = 0;
            for (int r = 0; r < RANKS; r++)
                for (int i = 0; i < REQUESTS; i++)
                    left += p[r][i]->running;
        }
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < REQUESTS; i++)
                cr_assert_eq(meshcoll_wait(p[r][i]), MESHCOLL_OK);
    }
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < REQUESTS; i++) {
            cr_expect_eq(own[r][i][COUNT - 1], (float)i + 1);
            cr_expect_geq(mc_persistent_of(p[r][i])->lead->epoch, 3u);
            meshcoll_free(p[r][i]); /* its barrier may still run */
        }
    cr_expect_eq(rank[0]->leads.calls.epoch, 0u);
    world_close();
}

/* Barriers and runs that wait for them end with the mesh; nothing is lost (under ASan). */
Test(leads, a_mesh_is_destroyed_while_runs_wait)
{
    world_open();
    for (int i = 0; i < CALLS; i++)
        begin(0, i);
    turn();
    world_close();
    for (int i = 0; i < CALLS; i++)
        meshcoll_free(request[0][i]);
}

/* A communicator of one rank is ahead of nobody. */
Test(leads, one_rank_never_waits)
{
    meshcoll_t *h;
    cr_assert_eq(mc_inproc_create("gpu=1", NULL, &h), MESHCOLL_OK);
    for (int i = 0; i < CALLS; i++)
        cr_assert_eq(meshcoll_bcast(h, data[0], data[1], COUNT, MESHCOLL_FLOAT32, 0), MESHCOLL_OK);
    cr_expect_eq(h->leads.calls.epoch, 0u);
    meshcoll_destroy(h);
}

/* Calls of no elements are the same calls, whether they wait or not: barriers compare them. */
Test(leads, empty_calls_are_alike)
{
    world_open();
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int64_t i = 0; i <= MC_LEAD_EPOCH / MC_LEAD_LEAST; i++)
            for (int r = 0; r < RANKS; r++) {
                meshcoll_request_t *begun = NULL;
                const int status =
                    r == 0 ? meshcoll_bcast(rank[r], NULL, NULL, 0, MESHCOLL_FLOAT32, 0)
                           : meshcoll_ibcast(rank[r], NULL, NULL, 0, MESHCOLL_FLOAT32, 0, &begun);
                cr_assert_eq(status, MESHCOLL_OK, "%s", meshcoll_last_error());
                cr_assert_eq(begun ? meshcoll_wait(begun) : MESHCOLL_OK, MESHCOLL_OK, "%s",
                             meshcoll_last_error());
            }
        for (int n = 0; n < TURNS; n++)
            turn();
    }
    for (int r = 0; r < RANKS; r++)
        begin(r, 0);
    finish(1);
    world_close();
}
