/* From start to wait nothing is allocated, and nothing is freed; nor by calls that come again. */
#include "base/base.h"
#include "support/allocations.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#ifdef MC_HAS_ALLOCATIONS

enum { MOST_RANKS = 16, RUNS = 3, MOST_COUNT = 3000 };

/* All ranks' requests from start to end. */
static void run(meshcoll_request_t **request, int n)
{
    int left = n;
    for (int r = 0; r < n; r++)
        cr_assert_eq(meshcoll_start(request[r]), MESHCOLL_OK);
    while (left > 0) {
        left = 0;
        for (int r = 0; r < n; r++)
            left += meshcoll_test(request[r]) == MESHCOLL_IN_PROGRESS;
    }
}

static void expect_none(const char *mesh, const meshcoll_args_t *args)
{
    meshcoll_t *rank[MOST_RANKS] = {0};
    meshcoll_request_t *request[MOST_RANKS];
    static float in[MOST_RANKS][MOST_COUNT * MOST_RANKS], out[MOST_RANKS][MOST_COUNT * MOST_RANKS];
    cr_assert_eq(mc_inproc_create(mesh, NULL, rank), MESHCOLL_OK, "%s", meshcoll_last_error());
    const int n = meshcoll_size(rank[0]);
    for (int r = 0; r < n; r++) {
        meshcoll_args_t a = *args;
        a.in = in[r];
        a.out = out[r];
        cr_assert_eq(meshcoll_init(rank[r], &a, &request[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
    }
    run(request, n); /* the transport of these tests takes memory for its first messages */
    n_calls = 0;
    counting = true;
    for (int again = 0; again < RUNS; again++)
        run(request, n);
    counting = false;
    cr_expect_eq(n_calls, 0u, "%s: %u calls of malloc and its kin, in %s", mesh, n_calls,
                 meshcoll_request_strategy(request[0]));
    for (int r = 0; r < n; r++)
        meshcoll_free(request[r]);
    for (int r = 0; r < n; r++)
        meshcoll_destroy(rank[r]);
}

Test(no_allocation, from_start_to_wait)
{
    static const char *const mesh[] = {"x=1", "x=5", "x=2,y=4", "x=2,y=2,z=3"};
    static const size_t counts[] = {0, 1, 2, MOST_COUNT};
    for (size_t m = 0; m < MC_COUNT(mesh); m++)
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
            for (size_t i = 0; i < MC_COUNT(counts); i++) {
                const meshcoll_args_t args = {.size = sizeof args,
                                              .collective = (meshcoll_collective_t)c,
                                              .count = counts[i],
                                              .datatype = MESHCOLL_FLOAT32};
                expect_none(mesh[m], &args);
            }
}

/* Sums of two lengths on each rank, by calls that do not wait. */
static void run_calls(meshcoll_t **rank, int n, float in[][MOST_COUNT * MOST_RANKS],
                      float out[][MOST_COUNT * MOST_RANKS])
{
    enum { CALLS = 4 };
    meshcoll_request_t *request[MOST_RANKS][CALLS];
    int left = n;
    for (int r = 0; r < n; r++)
        for (int i = 0; i < CALLS; i++)
            cr_assert_eq(meshcoll_iallreduce(rank[r], in[r] + 100 * i, out[r] + 100 * i,
                                             i % 2 ? 7 : 100, MESHCOLL_FLOAT32, MESHCOLL_SUM,
                                             &request[r][i]),
                         MESHCOLL_OK);
    while (left > 0) {
        left = 0;
        for (int r = 0; r < n; r++)
            left += meshcoll_testall(CALLS, request[r]) == MESHCOLL_IN_PROGRESS;
    }
}

/* The first rounds plan, bind, and take memory. */
Test(no_allocation, calls_that_come_again)
{
    static float in[MOST_RANKS][MOST_COUNT * MOST_RANKS], out[MOST_RANKS][MOST_COUNT * MOST_RANKS];
    meshcoll_t *rank[MOST_RANKS] = {0};
    setenv("MESHCOLL_ADAPT", "off", 1); /* trials plan */
    cr_assert_eq(mc_inproc_create("x=2,y=3", NULL, rank), MESHCOLL_OK);
    for (int again = 0; again < RUNS; again++)
        run_calls(rank, 6, in, out);
    n_calls = 0;
    counting = true;
    for (int again = 0; again < RUNS; again++)
        run_calls(rank, 6, in, out);
    counting = false;
    cr_expect_eq(n_calls, 0u, "%u calls of malloc and its kin", n_calls);
    for (int r = 0; r < 6; r++)
        meshcoll_destroy(rank[r]);
}

Test(no_allocation, groups_that_come_again)
{
    enum { CALLS = 20 };
    float v[CALLS] = {0};
    meshcoll_t *rank = NULL;
    cr_assert_eq(mc_inproc_create("x=1", NULL, &rank), MESHCOLL_OK);
    for (int again = 0; again < 2 * RUNS; again++) {
        n_calls = 0;
        counting = again >= RUNS;
        cr_assert_eq(meshcoll_group_begin(rank), MESHCOLL_OK);
        for (int i = 0; i < CALLS; i++)
            cr_assert_eq(meshcoll_allreduce(rank, &v[i], &v[i], 1, MESHCOLL_FLOAT32, MESHCOLL_SUM),
                         MESHCOLL_OK);
        cr_assert_eq(meshcoll_group_end(rank), MESHCOLL_OK);
        counting = false;
        cr_expect_eq(n_calls, 0u, "%u calls of malloc and its kin", n_calls);
    }
    meshcoll_destroy(rank);
}

/* The count itself counts. */
Test(no_allocation, is_noticed)
{
    n_calls = 0;
    counting = true;
    void *volatile at = malloc(8);
    free(at);
    counting = false;
    cr_expect_eq(n_calls, 2u);
}

#else

Test(no_allocation, needs_glibc_and_its_own_allocator)
{
    cr_skip("skipped: malloc is a sanitizer's, or not glibc's: calls are not counted");
}

#endif
