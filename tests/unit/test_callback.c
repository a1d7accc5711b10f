/* Callbacks of requests: each called once per run, before a wait returns, and what they may do. */
#include "runtime/call/request.h"
#include "runtime/progress/failure.h"
#include "runtime/progress/progress.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <setjmp.h>

enum { RANKS = 2, COUNT = 100, CHAIN = 20 };

static meshcoll_t *mesh[RANKS];
static int32_t in[RANKS][COUNT], out[RANKS][COUNT];

/* What the callback of one request has seen. */
typedef struct {
    int rank, n_calls, status, n_left;
    meshcoll_request_t *request, *next;
    bool frees, tests, blocks;
} seen_t;

static void open_ranks(void)
{
    cr_assert_eq(mc_inproc_create("x=2", NULL, mesh), MESHCOLL_OK);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            in[r][i] = r + i;
}

static void close_ranks(void)
{
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(mesh[r]);
}

TestSuite(callback, .init = open_ranks, .fini = close_ranks);

static void begin(int r, size_t count, meshcoll_request_t **request)
{
    cr_assert_eq(
        meshcoll_iallreduce(mesh[r], in[r], out[r], count, MESHCOLL_INT32, MESHCOLL_SUM, request),
        MESHCOLL_OK, "%s", meshcoll_last_error());
}

static void expect_blocked(seen_t *s)
{
    meshcoll_request_t *late = s->next;
    int index;
    cr_expect_eq(meshcoll_barrier(mesh[s->rank]), MESHCOLL_ERR_INVALID_ARG);
    cr_expect(strstr(meshcoll_last_error(), "must not call what blocks"));
    cr_expect_eq(meshcoll_wait(late), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_waitall(1, &late), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_waitany(1, &late, &index), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_group_end(mesh[s->rank]), MESHCOLL_ERR_INVALID_ARG);
}

static void called(void *context, meshcoll_request_t *request, int status)
{
    seen_t *const s = context;
    s->n_calls++;
    s->status = status;
    s->request = request;
    if (s->blocks)
        expect_blocked(s);
    if (s->tests)
        cr_expect_eq(meshcoll_test(request), status);
    if (s->frees)
        meshcoll_free(request);
}

static void set(meshcoll_request_t *request, seen_t *s)
{
    cr_assert_eq(meshcoll_set_callback(request, called, s), MESHCOLL_OK);
}

Test(callback, is_called_once_before_the_wait_returns)
{
    seen_t s[RANKS] = {{0}};
    meshcoll_request_t *request[RANKS];
    for (int r = 0; r < RANKS; r++) {
        begin(r, COUNT, &request[r]);
        set(request[r], &s[r]);
    }
    cr_expect_eq(s[0].n_calls, 0, "rank 0 needs rank 1's vector");
    cr_assert_eq(meshcoll_wait(request[0]), MESHCOLL_OK);
    cr_expect_eq(s[0].n_calls, 1);
    cr_expect_eq(s[0].status, MESHCOLL_OK);
    cr_expect_eq(s[0].request, request[0]);
    while (meshcoll_test(request[1]) == MESHCOLL_IN_PROGRESS)
        ;
    cr_expect_eq(s[1].n_calls, 1);
    cr_expect_eq(out[1][3], 7);
    /* the requests serve other calls, which have no callbacks */
    for (int r = 0; r < RANKS; r++)
        begin(r, COUNT, &request[r]);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(meshcoll_wait(request[r]), MESHCOLL_OK);
    cr_expect_eq(s[0].n_calls + s[1].n_calls, 2);
}

Test(callback, of_a_call_that_is_complete_at_once)
{
    seen_t s = {0};
    meshcoll_request_t *request;
    begin(0, 0, &request);
    set(request, &s);
    cr_expect_eq(s.n_calls, 1);
    cr_expect_eq(meshcoll_wait(request), MESHCOLL_OK);
    cr_expect_eq(s.n_calls, 1);
    cr_expect_eq(meshcoll_set_callback(NULL, called, &s), MESHCOLL_ERR_INVALID_ARG);
}

Test(callback, of_each_run_of_a_persistent_request)
{
    seen_t s[RANKS] = {{0}};
    meshcoll_request_t *request[RANKS];
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(meshcoll_allreduce_init(mesh[r], in[r], out[r], COUNT, MESHCOLL_INT32,
                                             MESHCOLL_SUM, &request[r]),
                     MESHCOLL_OK);
        set(request[r], &s[r]);
    }
    for (int run = 1; run <= 3; run++) {
        for (int r = 0; r < RANKS; r++)
            cr_assert_eq(meshcoll_start(request[r]), MESHCOLL_OK);
        cr_assert_eq(meshcoll_waitall(RANKS, request), MESHCOLL_OK);
        cr_expect_eq(s[0].n_calls, run);
        cr_expect_eq(s[1].n_calls, run);
    }
    cr_assert_eq(meshcoll_set_callback(request[0], NULL, NULL), MESHCOLL_OK);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(meshcoll_start(request[r]), MESHCOLL_OK);
    cr_assert_eq(meshcoll_waitall(RANKS, request), MESHCOLL_OK);
    cr_expect_eq(s[0].n_calls, 3);
    cr_expect_eq(s[1].n_calls, 4);
    for (int r = 0; r < RANKS; r++)
        meshcoll_free(request[r]);
}

Test(callback, of_a_barrier_that_starts_and_ends_in_one_rank)
{
    meshcoll_t *alone;
    seen_t s = {0};
    meshcoll_request_t *request;
    cr_assert_eq(mc_inproc_create("x=1", NULL, &alone), MESHCOLL_OK);
    cr_assert_eq(meshcoll_barrier_init(alone, &request), MESHCOLL_OK);
    set(request, &s);
    for (int run = 1; run <= 3; run++) {
        cr_assert_eq(meshcoll_start(request), MESHCOLL_OK);
        cr_expect_eq(s.n_calls, run, "called when the start returns");
        cr_assert_eq(meshcoll_wait(request), MESHCOLL_OK);
    }
    meshcoll_free(request);
    meshcoll_destroy(alone);
}

/* Frees the request in its callback, or before it is complete. */
Test(callback, and_freed_requests)
{
    seen_t s[RANKS] = {{.frees = true}, {0}};
    meshcoll_request_t *request[RANKS];
    for (int r = 0; r < RANKS; r++) {
        begin(r, COUNT, &request[r]);
        set(request[r], &s[r]);
    }
    meshcoll_free(request[1]);
    for (int i = 0; i < 10; i++)
        for (int r = 0; r < RANKS; r++) {
            meshcoll_request_t *other; /* progresses */
            begin(r, COUNT, &other);
            meshcoll_free(other);
            mc_job_progress(mesh[r]->job);
            mc_callbacks_run();
        }
    cr_expect_eq(s[0].n_calls, 1);
    cr_expect_eq(s[1].n_calls, 1);
}

/* Each callback collects its request, and begins the next call. */
static void go_on(void *context, meshcoll_request_t *request, int status)
{
    seen_t *const s = context;
    s->n_calls++;
    cr_expect_eq(status, MESHCOLL_OK);
    cr_expect_eq(meshcoll_test(request), MESHCOLL_OK);
    if (s->n_left-- == 0)
        return;
    begin(s->rank, (size_t)(1 + s->n_left), &s->request);
    cr_assert_eq(meshcoll_set_callback(s->request, go_on, s), MESHCOLL_OK);
}

Test(callback, begins_the_next_call)
{
    seen_t s[RANKS] = {{.rank = 0, .n_left = CHAIN}, {.rank = 1, .n_left = CHAIN}};
    for (int r = 0; r < RANKS; r++) {
        begin(r, COUNT, &s[r].request);
        cr_assert_eq(meshcoll_set_callback(s[r].request, go_on, &s[r]), MESHCOLL_OK);
    }
    /* the last barrier follows all of them on both ranks */
    for (int i = 0; i < 100000 && s[0].n_left + s[1].n_left > -2; i++)
        for (int r = 0; r < RANKS; r++) {
            meshcoll_request_t *none = NULL;
            mc_job_progress(mesh[r]->job);
            cr_assert_eq(meshcoll_testall(1, &none), MESHCOLL_OK);
        }
    cr_expect_eq(s[0].n_calls, CHAIN + 1);
    cr_expect_eq(s[1].n_calls, CHAIN + 1);
    cr_expect_eq(out[0][0], 1);
}

Test(callback, must_not_block)
{
    seen_t s[RANKS] = {{.blocks = true}, {0}};
    meshcoll_request_t *request[RANKS];
    for (int r = 0; r < RANKS; r++) {
        begin(r, COUNT, &request[r]);
        /* not complete while the first one's callback is called on rank 0 */
        cr_assert_eq(meshcoll_allreduce_init(mesh[r], in[r], out[r], 5, MESHCOLL_INT32,
                                             MESHCOLL_SUM, &s[r].next),
                     MESHCOLL_OK);
        set(request[r], &s[r]);
    }
    cr_assert_eq(meshcoll_start(s[0].next), MESHCOLL_OK);
    cr_assert_eq(meshcoll_wait(request[0]), MESHCOLL_OK);
    cr_assert_eq(meshcoll_wait(request[1]), MESHCOLL_OK);
    cr_assert_eq(meshcoll_start(s[1].next), MESHCOLL_OK);
    cr_expect_eq(s[0].n_calls, 1);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(meshcoll_wait(s[r].next), MESHCOLL_OK);
        meshcoll_free(s[r].next);
    }
}

static void expect_refused(void *context, meshcoll_request_t *request, int status)
{
    (void)request;
    (void)status;
    cr_expect_eq(meshcoll_barrier(context), MESHCOLL_ERR_INVALID_ARG);
}

/* Whether a group is open when the callback is called differs between ranks. */
Test(callback, that_is_refused_a_call_leaves_an_open_group_alone)
{
    meshcoll_t *lone;
    meshcoll_request_t *request;
    int32_t v = 3, sum = 0;
    cr_assert_eq(mc_inproc_create("x=1", NULL, &lone), MESHCOLL_OK);
    cr_assert_eq(meshcoll_iallreduce(lone, &v, &v, 1, MESHCOLL_INT32, MESHCOLL_SUM, &request),
                 MESHCOLL_OK);
    cr_assert_eq(meshcoll_group_begin(lone), MESHCOLL_OK);
    cr_assert_eq(meshcoll_set_callback(request, expect_refused, lone), MESHCOLL_OK);
    cr_assert_eq(meshcoll_allreduce(lone, &v, &sum, 1, MESHCOLL_INT32, MESHCOLL_SUM), MESHCOLL_OK);
    cr_expect_eq(meshcoll_group_end(lone), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_eq(sum, v);
    cr_expect_eq(meshcoll_wait(request), MESHCOLL_OK);
    meshcoll_destroy(lone);
}

Test(callback, of_a_run_that_fails)
{
    seen_t s = {.tests = true};
    meshcoll_request_t *request;
    begin(0, COUNT, &request);
    set(request, &s);
    mc_fail(MESHCOLL_ERR_TRANSPORT, "a cable is cut");
    mc_failure_break(mesh[0], MESHCOLL_ERR_TRANSPORT);
    cr_expect_eq(s.n_calls, 0);
    cr_expect_lt(meshcoll_barrier(mesh[0]), 0);
    cr_expect_eq(s.n_calls, 1, "called when the thread leaves the library");
    cr_expect_eq(s.status, MESHCOLL_ERR_TRANSPORT);
}

Test(callback, of_a_run_whose_mesh_is_destroyed)
{
    meshcoll_t *other[RANKS];
    seen_t s = {.frees = true};
    meshcoll_request_t *request;
    cr_assert_eq(mc_inproc_create("x=2", NULL, other), MESHCOLL_OK);
    cr_assert_eq(
        meshcoll_iallreduce(other[0], in[0], out[0], COUNT, MESHCOLL_INT32, MESHCOLL_SUM, &request),
        MESHCOLL_OK);
    set(request, &s);
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(other[r]);
    cr_expect_eq(s.n_calls, 1);
    cr_expect_eq(s.status, MESHCOLL_ERR_INVALID_ARG);
}

/* An alltoallv whose blocks pass through ranks of which nobody knows their sizes. */
static meshcoll_args_t exchange_of(int r)
{
    static const size_t one[RANKS] = {1, 1};
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = MESHCOLL_ALLTOALL,
                             .in = in[r],
                             .out = out[r],
                             .datatype = MESHCOLL_INT32,
                             .strategy = "alltoall:digits(x)",
                             .counts = one,
                             .in_counts = one};
}

/* It waits for an exchange of counts, by a request that has served a call before. */
Test(callback, of_a_pending_run_whose_mesh_is_destroyed)
{
    meshcoll_t *other[RANKS];
    seen_t s = {.frees = true};
    meshcoll_args_t args[RANKS] = {exchange_of(0), exchange_of(1)};
    meshcoll_request_t *request[RANKS];
    cr_assert_eq(mc_inproc_create("x=2", NULL, other), MESHCOLL_OK);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(meshcoll_begin(other[r], &args[r], &request[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
    cr_assert_eq(meshcoll_waitall(RANKS, request), MESHCOLL_OK);
    cr_assert_eq(meshcoll_init(other[0], &args[0], &request[0]), MESHCOLL_OK);
    cr_assert_eq(meshcoll_start(request[0]), MESHCOLL_OK);
    set(request[0], &s);
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(other[r]);
    cr_expect_eq(s.n_calls, 1);
    cr_expect_eq(s.status, MESHCOLL_ERR_INVALID_ARG);
}

/* Jumps out of callbacks and hooks ---------------------------------------------------------------- */

static jmp_buf target;
static int n_jumps;

static void jump(void *context, meshcoll_request_t *request, int status)
{
    (void)context, (void)request, (void)status;
    n_jumps++;
    longjmp(target, 1);
}

static int jump_from_hook(void *context)
{
    return *(bool *)context ? (jump(NULL, NULL, 0), 0) : 0;
}

/* From a frame that lies where those of the library were, and leaves much of it as it is. */
__attribute__((noinline)) static int barrier_from_below(int r)
{
    volatile char untouched[8192];
    untouched[0] = 0;
    return meshcoll_barrier(mesh[r]) + untouched[0];
}

/* What blocks is allowed again, and what was waited for is there. */
static void expect_usable(meshcoll_request_t *request)
{
    meshcoll_request_t *other;
    cr_assert_eq(meshcoll_ibarrier(mesh[1], &other), MESHCOLL_OK);
    cr_expect_eq(barrier_from_below(0), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_eq(meshcoll_wait(other), MESHCOLL_OK);
    cr_expect_eq(mesh[0]->n_restricted, 0u);
    cr_expect(!mc_callbacks_are_due());
    cr_expect_eq(meshcoll_wait(request), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_eq(meshcoll_group_begin(mesh[0]), MESHCOLL_OK);
    cr_expect_eq(meshcoll_group_end(mesh[0]), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_eq(n_jumps, 1);
}

Test(callback, may_be_left_by_longjmp)
{
    meshcoll_request_t *request[RANKS];
    for (int r = 0; r < RANKS; r++)
        begin(r, COUNT, &request[r]);
    cr_assert_eq(meshcoll_set_callback(request[0], jump, NULL), MESHCOLL_OK);
    if (!setjmp(target))
        cr_expect_eq(meshcoll_wait(request[0]), -1, "it does not return");
    expect_usable(request[0]);
    cr_expect_eq(meshcoll_wait(request[1]), MESHCOLL_OK);
}

/* pthread_exit unwinds the stack as an exception does. */
static void end_thread(void *context, meshcoll_request_t *request, int status)
{
    (void)context, (void)request, (void)status;
    n_jumps++;
    pthread_exit(NULL);
}

static void *call_at_once(void *request)
{
    (void)meshcoll_set_callback(request, end_thread, NULL);
    return NULL;
}

Test(callback, may_be_left_by_an_exception)
{
    pthread_t thread;
    meshcoll_request_t *request[RANKS];
    begin(0, 0, &request[0]);
    cr_assert_eq(pthread_create(&thread, NULL, call_at_once, request[0]), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(mesh[0]->n_restricted, 0u, "it was noticed at once");
    begin(1, 0, &request[1]);
    expect_usable(request[0]);
    cr_expect_eq(meshcoll_wait(request[1]), MESHCOLL_OK);
}

Test(hook, may_be_left_by_longjmp)
{
    static bool jumps = true;
    meshcoll_request_t *request[RANKS];
    const meshcoll_params_t params = {
        .size = sizeof params, .hook = jump_from_hook, .hook_context = &jumps};
    cr_assert_eq(mc_inproc_create("x=2", &params, mesh), MESHCOLL_OK);
    begin(0, COUNT, &request[0]);
    if (!setjmp(target))
        cr_expect_eq(meshcoll_wait(request[0]), -1, "it waits for rank 1");
    jumps = false;
    begin(1, COUNT, &request[1]);
    expect_usable(request[0]);
    cr_expect_eq(meshcoll_wait(request[1]), MESHCOLL_OK);
    close_ranks();
}
