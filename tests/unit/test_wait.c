/* Waiting, where a descriptor says all the time that there is news; and tests that find nothing. */
#include "runtime/progress/threads.h"
#include "runtime/progress/wait.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In place of the C library's. */
static _Atomic uint32_t n_yields;
int sched_yield(void)
{
    n_yields++;
    return (int)syscall(SYS_sched_yield);
}

static uint32_t n_looks, n_armed, news;

static uint32_t look(mc_transport_t *t)
{
    (void)t;
    n_looks++;
    return news;
}

static int arm(mc_transport_t *t)
{
    (void)t;
    n_armed++;
    return MESHCOLL_OK;
}

static const mc_transport_ops_t ops = {.progress = look, .arm = arm};

static mc_transport_t readable(void)
{
    return (mc_transport_t){.ops = &ops, .fd = eventfd(1, EFD_CLOEXEC)};
}

Test(wait, sleeps_blindly_after_a_sleep_in_vain)
{
    mc_transport_t t = readable();
    mc_job_t job = {.oversubscribed = true, .connections = {.polled = {&t}, .n_polled = 1}};
    meshcoll_t h = {.job = &job};
    mc_waiting_t w = {0};
    const uint32_t awake = mc_wait_polls(&job) + mc_wait_yields(&job);
    for (uint32_t i = 0; i < awake; i++)
        mc_wait_turn(&h, &w);
    cr_assert_eq(n_armed, 0);
    for (int i = 0; i < 10; i++)
        mc_wait_turn(&h, &w);
    cr_assert_eq(n_looks, awake + 10);
    cr_assert_eq(n_armed, 5, "every other sleep has no look at the descriptor, got %u", n_armed);
    close(t.fd);
}

Test(wait, looks_at_the_descriptor_again_after_news)
{
    mc_transport_t t = readable();
    mc_job_t job = {.oversubscribed = true, .connections = {.polled = {&t}, .n_polled = 1}};
    meshcoll_t h = {.job = &job};
    mc_waiting_t w = {.in_vain = true, .idle = 1000};
    news = 1;
    mc_wait_turn(&h, &w);
    cr_assert(!w.in_vain);
    cr_assert_eq(w.idle, 0);
    close(t.fd);
}

Test(wait, naps_after_a_sleep_in_vain_where_threads_share_the_mesh)
{
    mc_transport_t t = readable();
    mc_job_t job = {.oversubscribed = true, .connections = {.polled = {&t}, .n_polled = 1}};
    meshcoll_t h = {.job = &job};
    mc_waiting_t w = {0};
    const mc_settings_t settings = {.threads = "multiple"};
    cr_assert_eq(mc_threads_open(&job, &settings), MESHCOLL_OK);
    const uint32_t awake = mc_wait_polls(&job) + mc_wait_yields(&job);
    mc_lock(&h);
    for (uint32_t i = 0; i < awake + 10; i++)
        mc_wait_turn(&h, &w);
    mc_unlock(&h);
    cr_expect_eq(n_looks, awake + 10);
    cr_expect_eq(n_armed, 5, "every other sleep has no look at the descriptor, got %u", n_armed);
    mc_threads_close(&job);
    close(t.fd);
}

/* As while its rank greets a connection: nothing runs, and the socket is watched for room. */
Test(wait, the_progress_thread_naps_after_a_sleep_in_vain, .timeout = 60)
{
    enum { LOOKS = 100 };
    mc_transport_t t = readable();
    mc_job_t job = {.oversubscribed = true, .connections = {.polled = {&t}, .n_polled = 1}};
    meshcoll_t h = {.job = &job};
    const mc_settings_t settings = {.progress = "thread"};
    cr_assert_eq(mc_threads_open(&job, &settings), MESHCOLL_OK);
    for (bool enough = false; !enough; sched_yield()) {
        mc_lock(&h);
        enough = n_looks >= LOOKS;
        mc_unlock(&h);
    }
    mc_threads_close(&job);
    cr_expect_leq(n_armed, n_looks / 2 + 1, "%u sleeps in %u looks", n_armed, n_looks);
    close(t.fd);
}

/* As at a container's limit, which root has not: no machine has such a stack. */
Test(wait, a_thread_that_cannot_be_made_is_no_lack_of_memory)
{
    mc_job_t job = {0};
    const mc_settings_t settings = {.progress = "thread"};
    pthread_attr_t huge;
    cr_assert_eq(pthread_attr_init(&huge), 0);
    cr_assert_eq(pthread_attr_setstacksize(&huge, (size_t)1 << 46), 0);
    cr_assert_eq(pthread_setattr_default_np(&huge), 0);
    cr_expect_eq(mc_threads_open(&job, &settings), MESHCOLL_ERR_SYSTEM);
    cr_expect(strstr(meshcoll_last_error(), "progress thread"), "%s", meshcoll_last_error());
    cr_expect_null(job.threads);
}

/* Beside other programs, each of its yields may take milliseconds: its time limit must not wait for the last one. */
static void expect_look_among_yields(const char *threads)
{
    enum { YIELDS = 64 };
    const mc_settings_t settings = {.threads = threads};
    meshcoll_t *rank[2];
    meshcoll_request_t *r;
    mc_waiting_t w = {0};
    float in = 1, out;
    cr_assert_eq(mc_inproc_create("x=2", NULL, rank), MESHCOLL_OK);
    cr_assert_eq(mc_threads_open(rank[0]->job, &settings), MESHCOLL_OK);
    cr_assert_eq(rank[0]->job->threads != NULL, strcmp(threads, "multiple") == 0);
    rank[0]->job->oversubscribed = false;
    cr_assert_eq(meshcoll_iallreduce(rank[0], &in, &out, 1, MESHCOLL_FLOAT32, MESHCOLL_SUM, &r),
                 MESHCOLL_OK);
    mc_lock(rank[0]);
    for (int i = 0; i < MC_WAIT_POLLS; i++)
        mc_wait_turn(rank[0], &w);
    cr_expect_eq(r->watched.looked, 0, "%s: it looks while it polls", threads);
    for (int i = 0; i < YIELDS; i++)
        mc_wait_turn(rank[0], &w);
    cr_expect_neq(r->watched.looked, 0, "%s: it has not looked in %d yields", threads, YIELDS);
    mc_unlock(rank[0]);
    for (int i = 0; i < 2; i++)
        meshcoll_destroy(rank[i]);
    meshcoll_free(r);
}

Test(wait, looks_at_time_limits_among_its_yields)
{
    expect_look_among_yields("single");
    expect_look_among_yields("multiple");
}

/* Tests ------------------------------------------------------------------------------------------- */

/* Yields of a test of a request that cannot complete: alone, and among others. */
static void expect_yields(meshcoll_t *h, meshcoll_request_t *r, const char *what, uint32_t yields)
{
    meshcoll_request_t *list[] = {NULL, r};
    int index;
    h->job->oversubscribed = yields > 0;
    n_yields = 0;
    cr_expect_eq(meshcoll_test(r), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(n_yields, yields, "%s: test yields %u times", what, n_yields);
    n_yields = 0;
    cr_expect_eq(meshcoll_testall(2, list), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(n_yields, yields, "%s: testall yields %u times", what, n_yields);
    n_yields = 0;
    cr_expect_eq(meshcoll_testany(2, list, &index), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(n_yields, yields, "%s: testany yields %u times", what, n_yields);
}

Test(wait, a_test_that_finds_nothing_yields_where_ranks_share_cores)
{
    meshcoll_t *rank[2];
    meshcoll_request_t *r[4], *other;
    float in = 1, out[2], message;
    cr_assert_eq(mc_inproc_create("x=2", NULL, rank), MESHCOLL_OK);
    cr_assert_eq(
        meshcoll_iallreduce(rank[0], &in, &out[0], 1, MESHCOLL_FLOAT32, MESHCOLL_SUM, &r[0]),
        MESHCOLL_OK);
    cr_assert_eq(meshcoll_ibarrier(rank[0], &r[1]), MESHCOLL_OK);
    cr_assert_eq(meshcoll_recv_begin(rank[0], &message, 1, MESHCOLL_FLOAT32, 1, 0, NULL, &r[2]),
                 MESHCOLL_OK);
    cr_assert_eq(meshcoll_barrier_init(rank[0], &r[3]), MESHCOLL_OK);
    cr_assert_eq(meshcoll_start(r[3]), MESHCOLL_OK);
    static const char *const what[] = {"allreduce", "barrier", "receive", "persistent barrier"};
    for (size_t i = 0; i < MC_COUNT(r); i++) {
        expect_yields(rank[0], r[i], what[i], 1);
        expect_yields(rank[0], r[i], what[i], 0);
    }
    /* one that finds something does not */
    rank[0]->job->oversubscribed = true;
    cr_assert_eq(
        meshcoll_iallreduce(rank[1], &in, &out[1], 1, MESHCOLL_FLOAT32, MESHCOLL_SUM, &other),
        MESHCOLL_OK);
    n_yields = 0;
    const int status = meshcoll_test(r[0]);
    cr_expect_geq(status, 0);
    cr_expect_eq(n_yields, 0);
    for (int i = 0; i < 2; i++)
        meshcoll_destroy(rank[i]);
    for (int i = status == MESHCOLL_IN_PROGRESS ? 0 : 1; i < 4; i++)
        meshcoll_free(r[i]);
    meshcoll_free(other);
}
