/* A rank that waits, and was sent nothing, asks the one it waits for whether it is in another call of the same number.
 * Only that ends the mesh: not a rank that is late or ahead, or whose record is older than the wait. */
#include "runtime/diagnose/differ.h"

#include "runtime/call/request.h"
#include "runtime/diagnose/waits/requests.h"
#include "runtime/handle/run.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <string.h>

enum { RANKS = 2, LOOKS = 100 };

static meshcoll_t *rank[RANKS];
static meshcoll_request_t *request[RANKS];
static int32_t in[RANKS], out[RANKS];
static mc_waits_t other; /* what rank 1 answers */
static int asked;
static int unanswered; /* of the first questions */

/* In place of mc_waits_ask and mc_monitor_is_joined (cmake/Tests.cmake): these ranks have no monitors. */
int __wrap_mc_waits_ask(const mc_job_t *job, int32_t at, uint32_t number, mc_waits_t *w);
bool __wrap_mc_monitor_is_joined(const void *monitor);

int __wrap_mc_waits_ask(const mc_job_t *job, int32_t at, uint32_t number, mc_waits_t *w)
{
    (void)number;
    (void)job;
    cr_assert_eq(at, 1);
    asked++;
    *w = other;
    return asked <= unanswered ? MESHCOLL_ERR_TRANSPORT : MESHCOLL_OK;
}

bool __wrap_mc_monitor_is_joined(const void *monitor)
{
    return !monitor;
}

/* Rank 0 is the root of its own sum. */
static void both_call(int32_t root, meshcoll_op_t op)
{
    cr_assert_eq(mc_inproc_create("x=2", NULL, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(meshcoll_ireduce(rank[r], &in[r], &out[r], 1, MESHCOLL_INT32,
                                      r == 0 ? MESHCOLL_SUM : op, r == 0 ? 0 : root, &request[r]),
                     MESHCOLL_OK, "%s", meshcoll_last_error());
        cr_assert_eq(meshcoll_test(request[r]), MESHCOLL_IN_PROGRESS);
    }
    rank[0]->job->can_ask = true;
    other = (mc_waits_t){.rank = 1, .known_as = 1, .size = RANKS, .n = 1};
    mc_wait_describe(request[1], &other.wait[0]);
    asked = unanswered = 0;
}

/* Each rank is the root of its own reduction: both receive. */
static void both_wait(void)
{
    both_call(1, MESHCOLL_SUM);
}

static void end(void)
{
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(rank[r]);
    for (int r = 0; r < RANKS; r++)
        meshcoll_free(request[r]);
}

/* Looks at each 100 ms, up to an error. */
static int look(int n)
{
    int64_t now = 5000;
    int status = MESHCOLL_OK;
    request[0]->watched.looked = 0; /* another wait */
    for (int i = 0; i < n && !status; i++, now += 100) {
        status = mc_differ_ask(rank[0]->job, now);
        cr_assert_eq(mc_limits_poll(rank[0]->job, now), MESHCOLL_OK);
    }
    return status;
}

Test(differ, tells_two_roots_that_both_wait)
{
    both_wait();
    cr_expect_eq(look(LOOKS), MESHCOLL_ERR_MISMATCH);
    cr_expect_eq(asked, 1);
    cr_expect_str_eq(meshcoll_last_error(),
                     "rank 1 has made another call than rank 0, whose is reduce of 1 int32, 4 B "
                     "(call 0), sum, root 0: rank 1's is reduce of 1 int32, 4 B (call 0), sum, "
                     "root 1; all ranks must make the same calls in the same order");
    end();
}

static void expect_both_calls(int looks, const char *what)
{
    cr_expect_eq(look(looks), MESHCOLL_ERR_MISMATCH, "%s", what);
    cr_expect(strstr(meshcoll_last_error(), "sum, root 0: rank 1's is reduce"), "%s: %s", what,
              meshcoll_last_error());
}

Test(differ, looks_again_where_the_other_is_slow)
{
    both_wait();
    unanswered = 2; /* at 1 and 2 s of 3.3 */
    cr_expect_eq(look(LOOKS / 3), MESHCOLL_OK, "no answer: %s", meshcoll_last_error());
    cr_expect_eq(asked, 2);
    expect_both_calls(LOOKS, "an answer");
    unanswered = 0;
    other.n_meshes = 1;
    other.mesh[0] = (mc_waits_mesh_t){.id = other.wait[0].mesh,
                                      .n_calls = 1,
                                      .digest = (uint16_t)mc_run_of(request[1])->executor.digest};
    other.n = 0;
    cr_expect_eq(look(LOOKS / 7), MESHCOLL_OK, "no record: %s", meshcoll_last_error());
    other.n = 1;
    expect_both_calls(LOOKS, "a record");
    end();
}

/* Its message has come, and ends the mesh in any case. */
Test(differ, looks_again_where_the_sender_is_slow)
{
    int n = 1, status;
    both_call(0, MESHCOLL_MAX);
    unanswered = 3;
    cr_assert_eq(mc_limits_poll(rank[0]->job, mc_now_ms()), MESHCOLL_OK);
    while (!(status = mc_differ_check(rank[0]->job)) && n < LOOKS)
        n++;
    cr_expect_eq(status, MESHCOLL_ERR_MISMATCH);
    cr_expect_eq(n, unanswered + 1);
    cr_expect(strstr(meshcoll_last_error(), "sum, root 0: rank 1's is reduce"), "%s",
              meshcoll_last_error());
    end();
}

/* The same call on both, with the tags of two candidates: the program is not to blame for it. */
Test(differ, tells_another_strategy_from_another_call)
{
    int status = MESHCOLL_OK;
    cr_assert_eq(mc_inproc_create("x=2", NULL, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    for (int r = 0; r < RANKS; r++) {
        const meshcoll_args_t args = {.size = sizeof args,
                                      .collective = MESHCOLL_REDUCE,
                                      .in = &in[r],
                                      .out = &out[r],
                                      .count = 1,
                                      .datatype = MESHCOLL_INT32};
        cr_assert_eq(meshcoll_init(rank[r], &args, &request[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
        mc_run_sign(mc_run_of(request[r]), mc_run_of(request[r])->executor.digest, r);
        cr_assert_eq(mc_run_bind(mc_run_of(request[r]), &args, NULL), MESHCOLL_OK);
        cr_assert_eq(meshcoll_start(request[r]), MESHCOLL_OK, "%s", meshcoll_last_error());
        cr_assert_eq(meshcoll_test(request[r]), MESHCOLL_IN_PROGRESS);
    }
    cr_assert_eq(mc_limits_poll(rank[0]->job, mc_now_ms()), MESHCOLL_OK);
    for (int n = 0; n < LOOKS && !status; n++)
        status = mc_differ_check(rank[0]->job);
    cr_expect_eq(status, MESHCOLL_ERR_MISMATCH);
    cr_expect(strstr(meshcoll_last_error(), "by another strategy than rank 0"), "%s",
              meshcoll_last_error());
    end();
}

/* Its time limit leaves no time to look again. */
Test(differ, tells_before_the_time_limit)
{
    both_wait();
    rank[0]->timeout_ms = 2500;
    other.n = 0;
    other.n_meshes = 1;
    other.mesh[0] = (mc_waits_mesh_t){.id = other.wait[0].mesh,
                                      .n_calls = 1,
                                      .digest = (uint16_t)mc_run_of(request[1])->executor.digest};
    cr_expect_eq(look(LOOKS), MESHCOLL_ERR_MISMATCH, "%s", meshcoll_last_error());
    cr_expect(strstr(meshcoll_last_error(), "MESHCOLL_CHECK=1 tells both"));
    end();
}

/* It is through with its call, whose message went elsewhere. */
Test(differ, tells_a_call_that_the_other_has_made)
{
    both_wait();
    other.wait[0].number++;
    other.n_meshes = 1;
    other.mesh[0] = (mc_waits_mesh_t){.id = other.wait[0].mesh,
                                      .n_calls = 2,
                                      .digest = (uint16_t)mc_run_of(request[0])->executor.digest};
    cr_expect_eq(look(LOOKS), MESHCOLL_OK, "the same call: %s", meshcoll_last_error());
    other.mesh[0].digest = (uint16_t)mc_run_of(request[1])->executor.digest;
    other.mesh[0].id++;
    cr_expect_eq(look(LOOKS), MESHCOLL_OK, "another mesh: %s", meshcoll_last_error());
    other.mesh[0].id--;
    cr_expect_eq(look(LOOKS), MESHCOLL_ERR_MISMATCH);
    cr_expect(strstr(meshcoll_last_error(), "rank 1 has made another call than rank 0"));
    end();
}

static uint32_t made(uint32_t number)
{
    mc_waits_t w;
    mc_waits_copy(rank[0]->job, number, &w);
    return w.mesh[0].digest;
}

/* What has been overwritten, or is of the last time that numbers came round, is not known. */
Test(differ, knows_the_last_calls)
{
    both_wait();
    const uint32_t digest = (uint16_t)mc_run_of(request[0])->executor.digest;
    cr_expect_eq(made(0), digest);
    cr_expect_eq(made(1), 0u);
    rank[0]->calls.n += MC_MADE_CALLS - 1;
    cr_expect_eq(made(0), digest);
    rank[0]->calls.n++;
    cr_expect_eq(made(0), 0u, "too long ago");
    rank[0]->calls.n += MC_TAG_CALLS - MC_MADE_CALLS;
    cr_expect_eq(made(0), 0u, "numbers came round");
    end();
}

/* The interval is doubled: at 1, 2, 4 and 8 s of ten. */
static void expect_silence(const char *what)
{
    asked = 0;
    cr_expect_eq(look(LOOKS), MESHCOLL_OK, "%s: %s", what, meshcoll_last_error());
    cr_expect_eq(asked, 4, "%s: asked %d times", what, asked);
}

Test(differ, gives_no_false_alarm)
{
    both_wait();
    mc_wait_t *const w = &other.wait[0];
    const mc_wait_t real = *w;
    other.n = 0;
    expect_silence("in no call");
    other.n = 1;
    w->number = real.number + 1;
    expect_silence("ahead");
    w->number = real.number;
    w->digest = mc_run_of(request[0])->executor.digest;
    expect_silence("in the same call");
    *w = real;
    w->mesh++;
    expect_silence("on another mesh");
    *w = real;
    w->is_persistent = true;
    expect_silence("a persistent operation");
    *w = real;
    w->kind = MC_WAIT_RECV;
    expect_silence("a tagged message");
    *w = real;
    w->age_ms = 20000;
    expect_silence("an old record");
    *w = real;
    cr_expect_eq(look(LOOKS), MESHCOLL_ERR_MISMATCH);
    end();
}
