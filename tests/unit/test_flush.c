/* The end of requests over two transports that flush. */
#include "runtime/progress/flush.h"

#include "runtime/handle/handle.h"
#include "runtime/progress/progress.h"

#include <criterion/criterion.h>

typedef struct {
    mc_transport_t transport;
    int begins, ends; /* what its flushes come to */
    int n;            /* flushes so far */
} wire_t;

static int flush(mc_transport_t *t)
{
    ((wire_t *)t)->n++;
    return ((wire_t *)t)->begins;
}

static int flushed(mc_transport_t *t)
{
    return ((wire_t *)t)->ends;
}

static int advance(meshcoll_request_t *r, uint32_t events)
{
    (void)r, (void)events;
    return MESHCOLL_IN_PROGRESS;
}

static void broke(const mc_job_t *job)
{
    (void)job;
}

static const mc_transport_ops_t ops = {.flush = flush, .flushed = flushed};
static const mc_request_kind_t runs = {.advance = advance}, message = {0};
static const mc_job_hooks_t hooks = {.broke = broke};
enum { BOTH = 3 };

static mc_job_t job;
static meshcoll_t mesh;
static wire_t wire[2];
static meshcoll_request_t request[2];

static void open_job(void)
{
    job = (mc_job_t){.hooks = &hooks, .connections.n_polled = 2};
    mesh = (meshcoll_t){.job = &job};
    for (uint32_t i = 0; i < 2; i++) {
        wire[i] = (wire_t){
            {.ops = &ops, .place = 1u << i}, MESHCOLL_IN_PROGRESS, MESHCOLL_IN_PROGRESS, 0};
        job.connections.polled[i] = &wire[i].transport;
        request[i] = (meshcoll_request_t){.mesh = &mesh, .kind = &runs};
    }
    mc_list_append(&job.requests.running, &request[0].in_flight);
}

static int look(int i, mc_flush_t *f)
{
    mc_flush_poll(&job);
    return mc_flush_check(&request[i], f, 0);
}

Test(flush, ends_when_all_transports_have)
{
    mc_flush_t f;
    open_job();
    cr_assert_eq(mc_flush_begin(&request[0], BOTH, &f), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(look(0, &f), MESHCOLL_IN_PROGRESS);
    wire[0].ends = MESHCOLL_OK;
    cr_expect_eq(look(0, &f), MESHCOLL_IN_PROGRESS);
    wire[1].ends = MESHCOLL_OK;
    cr_expect_eq(look(0, &f), MESHCOLL_OK);
    cr_expect_eq(job.connections.n_flushing, 0);
    wire[0].begins = MESHCOLL_OK;
    cr_expect_eq(mc_flush_begin(&request[0], 1, &f), MESHCOLL_OK, "nothing was left to send");
    cr_expect_eq(mc_flush_begin(&request[0], 0, &f), MESHCOLL_OK, "none of them flushes");
}

Test(flush, one_that_has_begun_is_not_enough)
{
    mc_flush_t first, second;
    open_job();
    cr_assert_eq(mc_flush_begin(&request[0], 1, &first), MESHCOLL_IN_PROGRESS);
    cr_assert_eq(mc_flush_begin(&request[1], 1, &second), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(wire[0].n, 1);
    wire[0].ends = MESHCOLL_OK;
    cr_expect_eq(look(0, &first), MESHCOLL_OK);
    cr_expect_eq(wire[0].n, 2, "the next one begins");
    cr_expect_eq(mc_flush_check(&request[1], &second, 0), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(look(1, &second), MESHCOLL_OK);
    cr_expect_eq(wire[0].n, 2);
}

static uint32_t polls_until_given_up(mc_flush_t *f, uint32_t most)
{
    uint32_t n = 1;
    while (n < most && look(0, f) == MESHCOLL_IN_PROGRESS)
        n++;
    return n;
}

Test(flush, is_given_up_only_where_others_run)
{
    enum { MANY = 4 * (MC_WAIT_POLLS + MC_WAIT_YIELDS) };
    mc_flush_t f, other;
    open_job();
    cr_assert_eq(mc_flush_begin(&request[0], BOTH, &f), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(polls_until_given_up(&f, MANY), (uint32_t)MANY);
    mc_list_append(&job.requests.running, &request[1].in_flight);
    const uint32_t n = polls_until_given_up(&f, MANY);
    cr_expect(n > MC_WAIT_POLLS + MC_WAIT_YIELDS && n < MANY, "%u polls", n);
    cr_expect_eq(mc_flush_begin(&request[1], BOTH, &other), MESHCOLL_OK, "it is stuck");
    mc_list_remove(&request[1].in_flight);
    cr_expect_eq(mc_flush_begin(&request[0], BOTH, &f), MESHCOLL_IN_PROGRESS);
    request[1].kind = &message;
    cr_expect_eq(mc_flush_begin(&request[1], BOTH, &other), MESHCOLL_OK, "messages do not wait");
    wire[0].ends = wire[1].ends = MESHCOLL_OK;
    cr_expect_eq(look(0, &f), MESHCOLL_IN_PROGRESS);
    cr_expect_eq(look(0, &f), MESHCOLL_OK);
    wire[0].ends = MESHCOLL_IN_PROGRESS;
    cr_expect_eq(mc_flush_begin(&request[1], BOTH, &other), MESHCOLL_IN_PROGRESS, "not any more");
}

Test(flush, one_that_fails_ends_the_mesh)
{
    for (int failing = 0; failing < 2; failing++) {
        mc_flush_t f;
        open_job();
        mc_list_remove(&request[0].in_flight);
        cr_assert_eq(mc_flush_begin(&request[0], BOTH, &f), MESHCOLL_IN_PROGRESS);
        wire[failing].ends = mc_fail(MESHCOLL_ERR_TRANSPORT, "a flush failed");
        mc_flush_poll(&job);
        cr_expect_eq(job.failure.status, MESHCOLL_ERR_TRANSPORT);
    }
}
