/* A thread with a small stack: a call, its plan and the creation of a mesh take 32 KiB of it at most. */
#include "compose/planner/planner.h"
#include "support/inproc.h"
#include "support/places.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PROMISE = 64 << 10, MOST = 32 << 10, MARK = 0x5a, RANKS = 32, COUNT = 100 };

/* Sanitizers keep more on the stack, and builds for debugging. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { MEASURED = 1 };
#else
enum { MEASURED = 0 };
#endif

/* Runs it in a thread; returns the bytes of stack that it has touched. */
static size_t stack_of(void *(*run)(void *))
{
    const size_t bytes = (size_t)PTHREAD_STACK_MIN + (MEASURED ? 1 : 32) * (size_t)PROMISE;
    unsigned char *const stack =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t thread;
    cr_assert_neq(stack, MAP_FAILED);
    memset(stack, MARK, bytes);
    pthread_attr_init(&attr);
    cr_assert_eq(pthread_attr_setstack(&attr, stack, bytes), 0);
    cr_assert_eq(pthread_create(&thread, &attr, run, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    size_t left = 0;
    while (left < bytes && stack[left] == MARK)
        left++;
    munmap(stack, bytes);
    cr_assert_gt(left, 0u, "all of the stack is used");
    return bytes - left;
}

static void *nothing(void *unused)
{
    return unused;
}

static void expect_small(const char *what, void *(*run)(void *))
{
    const size_t used = stack_of(run) - stack_of(nothing);
    cr_assert(!MEASURED || used <= MOST, "%s: %zu bytes of the stack", what, used);
}

static void plan_all(const place_t *at)
{
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        for (double bytes = 8; bytes < 1e8; bytes *= 1000) {
            const mc_planner_query_t query = {
                .bytes = bytes, .max_segments = 64, .in_order = bytes > 1e6};
            mc_ranked_t best;
            mc_ranking_t ranking;
            cr_assert_eq(
                mc_planner_best((meshcoll_collective_t)c, &at->mesh, &at->links, &query, &best),
                MESHCOLL_OK, "%s", meshcoll_last_error());
            cr_assert_eq(
                mc_planner_rank((meshcoll_collective_t)c, &at->mesh, &at->links, &query, &ranking),
                MESHCOLL_OK, "%s", meshcoll_last_error());
            free(ranking.list);
        }
}

static void *plan(void *unused)
{
    const place_t places[] = {place_of("rack=2,box=3,gpu=4", "dgx-h100"),
                              place_of("box=4+3+1", "lab"),
                              place_of("box=4,gpu=8", "dgx-h100,box=burst:1MB")};
    for (size_t i = 0; i < MC_COUNT(places); i++)
        plan_all(&places[i]);
    return unused;
}

Test(stack, planning)
{
    expect_small("a plan", plan);
}

static meshcoll_t *mesh[RANKS];
static int n_ranks;

static void run(meshcoll_collective_t collective, const float *in, float *out)
{
    meshcoll_request_t *request[RANKS];
    for (int r = 0; r < n_ranks; r++) {
        const meshcoll_args_t args = {.size = sizeof args,
                                      .collective = collective,
                                      .in = in,
                                      .out = out + (size_t)r * RANKS * COUNT,
                                      .count = COUNT,
                                      .datatype = MESHCOLL_FLOAT32};
        cr_assert_eq(meshcoll_init(mesh[r], &args, &request[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
        cr_assert_geq(meshcoll_start(request[r]), 0, "%s", meshcoll_last_error());
    }
    for (int left = RANKS; left > 0;) {
        left = 0;
        for (int r = 0; r < n_ranks; r++)
            left += meshcoll_test(request[r]) == MESHCOLL_IN_PROGRESS;
    }
    for (int r = 0; r < n_ranks; r++)
        meshcoll_free(request[r]);
}

static void *call(void *unused)
{
    static float in[RANKS * COUNT], out[RANKS * RANKS * COUNT];
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        run((meshcoll_collective_t)c, in, out);
    return unused;
}

Test(stack, calls)
{
    static const char *const text[] = {"box=2,gpu=2", "box=3+1+2", "a=2,b=2,c=2,d=2",
                                       "a=2,b=2,c=2,d=2,e=2"};
    for (size_t i = 0; i < MC_COUNT(text); i++) {
        cr_assert_eq(mc_inproc_create(text[i], NULL, mesh), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
        n_ranks = meshcoll_size(mesh[0]);
        expect_small(text[i], call);
        for (int r = 0; r < n_ranks; r++)
            meshcoll_destroy(mesh[r]);
    }
}
