/* Calls that do not wait: several at once, complete in any order, served by requests that are used
 * again as each rank sees fit. All ranks are in this process. */
#include "runtime/call/cache.h"
#include "runtime/call/call.h"
#include "runtime/call/leads.h"
#include "runtime/progress/progress.h"
#include "support/six.h"

#include <criterion/criterion.h>
#include <string.h>

enum { COUNT = 40, AT_ONCE = 5, MANY = MC_CACHED_REQUESTS + 8, MOST_TURNS = 100000 };

static int32_t in[RANKS][MANY][COUNT], out[RANKS][MANY][COUNT];

/* The i-th sum of rank r. */
static meshcoll_request_t *begin(int r, int i, size_t count)
{
    meshcoll_request_t *request = NULL;
    for (int k = 0; k < COUNT; k++)
        in[r][i][k] = 1000 * i + 10 * r + k;
    memset(out[r][i], -1, sizeof out[r][i]);
    cr_assert_eq(meshcoll_iallreduce(rank[r], in[r][i], out[r][i], count, MESHCOLL_INT32,
                                     MESHCOLL_SUM, &request),
                 MESHCOLL_OK, "%s", meshcoll_last_error());
    return request;
}

static void expect_sum(int r, int i, size_t count)
{
    for (int k = 0; k < (int)count; k++)
        cr_assert_eq(out[r][i][k], RANKS * (1000 * i + k) + 10 * RANKS * (RANKS - 1) / 2,
                     "rank %d, call %d, element %d: %d", r, i, k, out[r][i][k]);
}

/* Ranks in turn, until `left` are complete. */
static void finish(meshcoll_request_t *request[RANKS][MANY], int n)
{
    int left = RANKS * n;
    for (int turn = 0; left > 0; turn++) {
        cr_assert_lt(turn, MOST_TURNS, "hangs");
        for (int r = 0; r < RANKS; r++) {
            int at;
            const int status = meshcoll_testany(n, request[r], &at);
            cr_assert_geq(status, 0, "%s", meshcoll_last_error());
            if (status == MESHCOLL_OK && at >= 0) {
                cr_assert_null(request[r][at]);
                left--;
            }
        }
    }
}

Test(calls, more_at_once_than_are_kept)
{
    static meshcoll_request_t *request[RANKS][MANY];
    world_open();
    for (int round = 0; round < 3; round++) {
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < MANY; i++)
                request[r][i] = begin(r, i, COUNT);
        finish(request, MANY);
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < MANY; i++)
                expect_sum(r, i, COUNT);
    }
    world_close();
}

/* Calls that come again in the same order, more in flight than are looked at to find one: each finds the request that is
 * bound to its buffers. */
Test(calls, in_flight_keep_their_requests)
{
    enum { N = 4 * MC_CACHE_LOOKS };
    static meshcoll_request_t *request[RANKS][MANY], *before[RANKS][N];
    _Static_assert((int)N <= (int)MANY, "there are buffers for them");
    setenv("MESHCOLL_ADAPT", "off", 1); /* while they learn they are not bound */
    world_open();
    for (int round = 0; round < 5; round++) {
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < N; i++) {
                request[r][i] = begin(r, i, COUNT);
                cr_expect(round < 2 || request[r][i] == before[r][i], "round %d, call %d", round,
                          i);
                before[r][i] = request[r][i];
            }
        finish(request, N);
    }
    world_close();
}

/* Each rank keeps other requests for itself: the even ones wait for every call before the next, the
 * odd ones for all together, so that what serves a call differs, and numbers must not. */
Test(calls, what_serves_a_call_is_each_ranks_own)
{
    meshcoll_request_t *request[RANKS][AT_ONCE];
    int begun[RANKS] = {0}, done[RANKS] = {0};
    bool agree = true;
    world_open();
    for (int turn = 0, left = RANKS; left > 0; turn++) {
        cr_assert_lt(turn, MOST_TURNS, "hangs");
        left = 0;
        for (int r = 0; r < RANKS; r++) {
            const int most = r % 2 ? AT_ONCE : begun[r] == done[r] ? begun[r] + 1 : begun[r];
            for (; begun[r] < most && begun[r] < AT_ONCE; begun[r]++)
                request[r][begun[r]] = begin(r, begun[r], COUNT);
            if (done[r] < begun[r]) {
                const int status = meshcoll_test(request[r][done[r]]);
                cr_assert_geq(status, 0, "%s", meshcoll_last_error());
                done[r] += status == MESHCOLL_OK;
            }
            left += done[r] < AT_ONCE;
        }
    }
    uint32_t kept[RANKS] = {0};
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < AT_ONCE; i++)
            expect_sum(r, i, COUNT);
        kept[r] = rank[r]->cache.n;
        agree = agree && kept[r] == kept[0];
        cr_expect_eq(rank[r]->calls.n, rank[0]->calls.n);
    }
    cr_expect_eq(kept[0], 1);
    cr_expect_eq(kept[1], AT_ONCE);
    cr_expect_not(agree);
    world_close();
}

/* A second round of the same calls takes the requests and the memory of the first. */
Test(calls, are_planned_once)
{
    static meshcoll_request_t *request[RANKS][MANY];
    meshcoll_request_t *first[AT_ONCE];
    setenv("MESHCOLL_ADAPT", "off", 1); /* while they learn they are not bound */
    world_open();
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            for (int r = 0; r < RANKS; r++)
                request[r][i] = begin(r, i, COUNT);
        for (int i = 0; i < AT_ONCE; i++) {
            bool known = round == 0;
            if (round == 0)
                first[i] = request[2][i];
            for (int k = 0; k < AT_ONCE; k++)
                known = known || first[k] == request[2][i];
            cr_expect(known, "round %d made another request", round);
        }
        finish(request, AT_ONCE);
    }
    world_close();
}

/* Nobody waits: dropped requests are released when complete, and serve again. */
Test(calls, may_be_left_to_themselves)
{
    meshcoll_request_t *last[RANKS];
    world_open();
    for (int r = 0; r < RANKS; r++) {
        meshcoll_free(begin(r, 0, COUNT));
        last[r] = begin(r, 1, COUNT);
    }
    for (int turn = 0, left = RANKS; left > 0; turn++) {
        cr_assert_lt(turn, MOST_TURNS, "hangs");
        left = 0;
        for (int r = 0; r < RANKS; r++)
            left += last[r] && meshcoll_testall(1, &last[r]) == MESHCOLL_IN_PROGRESS;
    }
    for (int turn = 0; turn < 100; turn++)
        for (int r = 0; r < RANKS; r++)
            mc_job_progress(rank[r]->job);
    for (int r = 0; r < RANKS; r++) {
        expect_sum(r, 0, COUNT);
        expect_sum(r, 1, COUNT);
        for (mc_list_node_t *n = rank[r]->cache.requests.first; n; n = n->next)
            cr_expect_not(mc_cached_of(n)->run.head.taken);
    }
    world_close();
}

/* `r` sums up `n` elements of its own `i`, by the strategy it is told; ranks in turn. */
static void sum_all(int i, size_t count, bool others_too)
{
    meshcoll_request_t *request[RANKS][MANY];
    for (int r = 0; r < RANKS; r++)
        request[r][0] = begin(r, others_too && r % 2 ? i + 1 : i, count);
    for (int r = 0; r < RANKS; r++)
        for (int n = 1; n < MANY; n++)
            request[r][n] = NULL;
    finish(request, 1);
}

/* The same call again finds its request bound, on the ranks that have the same buffers again. */
Test(calls, made_again_are_known)
{
    setenv("MESHCOLL_ADAPT", "off", 1); /* while they learn they are not bound */
    world_open();
    for (int n = 0; n < 6; n++) {
        for (size_t count = 1; count <= 3; count++)
            sum_all(4 * (int)count, count, n % 2);
        for (int r = 0; r < RANKS; r++)
            cr_expect_eq(rank[r]->calls.n, rank[0]->calls.n);
    }
    int known = 0;
    for (int r = 0; r < RANKS; r++)
        for (mc_list_node_t *n = rank[r]->cache.requests.first; n; n = n->next)
            known += mc_cached_of(n)->kind != MC_KIND_ONCE;
    cr_expect_eq(known, 3 * RANKS);
    world_close();
}

static const mc_run_t *served_last(const meshcoll_t *h)
{
    const mc_cached_t *last = NULL;
    for (mc_list_node_t *n = h->cache.requests.first; n; n = n->next) {
        const mc_cached_t *const r = mc_cached_of(n);
        last = last && last->used > r->used ? last : r;
    }
    return &last->run;
}

/* Each rank forgets when and what it likes, and some never: all choose alike, and all data arrive. */
Test(calls, ranks_forget_in_any_order)
{
    enum { MOST = COUNT, TURNS = 4 * MOST };
    bool differ = false;
    world_open();
    for (int turn = 0; turn < TURNS; turn++) {
        const size_t count = 1 + (size_t)(turn * turn + turn / 7) % MOST;
        for (int r = 1; r < RANKS; r++) {
            if (turn % (3 * r) == r)
                mc_cache_drop(rank[r], -1);
            differ = differ || rank[r]->cache.n != rank[0]->cache.n;
        }
        sum_all(turn % 5, count, turn % 2);
        for (int r = 0; r < RANKS; r++) {
            const mc_run_t *const mine = served_last(rank[r]);
            cr_assert_str_eq(mine->text, served_last(rank[0])->text);
            cr_assert_eq(mine->choice.seconds, served_last(rank[0])->choice.seconds);
            if (turn % 2 == 0)
                expect_sum(r, turn % 5, count);
        }
    }
    cr_expect(differ);
    world_close();
}

/* What is forced in between, or another call bound to the same request. */
Test(calls, known_ones_change)
{
    world_open();
    for (int n = 0; n < 12; n++) {
        const bool forced = n % 4 >= 2;
        for (int r = 0; r < RANKS; r++)
            cr_assert_eq(meshcoll_set_strategy(rank[r], MESHCOLL_ALLREDUCE,
                                               forced ? "allreduce:ring(box*gpu)" : NULL),
                         MESHCOLL_OK);
        for (int again = 0; again < 3; again++) {
            sum_all(0, COUNT, false);
            for (int r = 0; r < RANKS; r++) {
                expect_sum(r, 0, COUNT);
                const char *const text = served_last(rank[r])->text;
                cr_expect_eq(!strcmp(text, "allreduce:ring(box*gpu)"), forced, "%s", text);
            }
            sum_all(1 + again % 2, COUNT, false);
            expect_sum(3, 1 + again % 2, COUNT);
        }
    }
    world_close();
}

static void first_of_two(void *context, void *dst, const void *a, const void *b, size_t n,
                         meshcoll_datatype_t datatype)
{
    (void)context, (void)b, (void)datatype;
    memmove(dst, a, n * sizeof(int32_t));
}

/* A call that was good is told when its operation is gone, or what it says has changed. */
Test(calls, known_ones_are_checked)
{
    meshcoll_t *alone;
    meshcoll_op_t op;
    int32_t one = 1, sum = 0;
    cr_assert_eq(mc_inproc_create("x=1", NULL, &alone), MESHCOLL_OK);
    cr_assert_eq(meshcoll_op_create(first_of_two, 1, NULL, &op), MESHCOLL_OK);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(meshcoll_allreduce(alone, &one, &sum, 1, MESHCOLL_INT32, op), MESHCOLL_OK);
        cr_expect_eq(meshcoll_allreduce(alone, &one, &sum, 1, MESHCOLL_INT32, MESHCOLL_SUM),
                     MESHCOLL_OK);
    }
    meshcoll_op_free(op);
    cr_expect_lt(meshcoll_allreduce(alone, &one, &sum, 1, MESHCOLL_INT32, op), 0);
    cr_expect_lt(meshcoll_allreduce(alone, &one, &sum, 1, MESHCOLL_INT32, MESHCOLL_OPS), 0);
    cr_expect_lt(meshcoll_bcast(alone, NULL, &sum, 1, MESHCOLL_INT32, 0), 0);
    cr_expect_lt(meshcoll_bcast(alone, &one, &sum, 1, MESHCOLL_INT32, 1), 0);
    meshcoll_destroy(alone);
}

Test(calls, of_nothing_are_complete)
{
    world_open();
    meshcoll_request_t *request = begin(0, 0, 0);
    cr_expect_not_null(request);
    cr_expect_eq(meshcoll_waitall(1, &request), MESHCOLL_OK);
    cr_expect_null(request);
    int at = 7;
    cr_expect_eq(meshcoll_waitany(1, &request, &at), MESHCOLL_OK);
    cr_expect_eq(at, -1);
    cr_expect_eq(meshcoll_wait(NULL), MESHCOLL_OK);
    cr_expect_eq(meshcoll_test(NULL), MESHCOLL_OK);
    world_close();
}

static meshcoll_request_t *persistent(int r, int i)
{
    meshcoll_request_t *request = NULL;
    for (int k = 0; k < COUNT; k++)
        in[r][i][k] = 1000 * i + 10 * r + k;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = in[r][i],
                                  .out = out[r][i],
                                  .count = COUNT,
                                  .datatype = MESHCOLL_INT32};
    cr_assert_eq(meshcoll_init(rank[r], &args, &request), MESHCOLL_OK);
    return request;
}

/* Persistent ones between calls, started in another order on each rank, and told of once a start. */
Test(calls, and_persistent_requests_mix)
{
    static meshcoll_request_t *request[RANKS][MANY];
    meshcoll_request_t *p[RANKS][2];
    world_open();
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 2; i++)
            p[r][i] = persistent(r, 3 + i);
    for (int round = 0; round < 3; round++) {
        for (int r = 0; r < RANKS; r++) {
            cr_assert_eq(meshcoll_start(p[r][r % 2]), MESHCOLL_OK);
            request[r][0] = begin(r, 0, COUNT);
            cr_assert_eq(meshcoll_start(p[r][1 - r % 2]), MESHCOLL_OK);
            request[r][1] = begin(r, 1, COUNT);
        }
        finish(request, 2);
        for (int turn = 0, left = RANKS; left > 0; turn++) {
            cr_assert_lt(turn, MOST_TURNS, "hangs");
            left = 0;
            for (int r = 0; r < RANKS; r++)
                left += meshcoll_testall(2, p[r]) == MESHCOLL_IN_PROGRESS;
        }
        for (int r = 0; r < RANKS; r++) {
            int at = 7;
            cr_expect_not_null(p[r][0]);
            cr_expect_eq(meshcoll_waitany(2, p[r], &at), MESHCOLL_OK);
            cr_expect_eq(at, -1, "a persistent request is told of once a start");
            expect_sum(r, 0, COUNT);
            expect_sum(r, 1, COUNT);
            expect_sum(r, 3, COUNT);
            expect_sum(r, 4, COUNT);
        }
    }
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 2; i++)
            meshcoll_free(p[r][i]);
    world_close();
}

/* Numbers of both kinds never meet each other, nor that of greetings, however many there were. */
Test(calls, numbers_have_halves)
{
    const uint32_t half = 1u << (MC_TAG_OPERATION_BITS - 1);
    meshcoll_t h = {.calls = {.n = half - 1}};
    uint32_t number;
    for (int i = 0; i < 4; i++) {
        cr_expect_lt(mc_next_call(&h), half);
        cr_expect_eq(mc_persistent_take(&h, &number), MESHCOLL_OK);
        cr_expect_geq(number, half);
        cr_expect_lt(number, (uint32_t)MC_FIRST_BARRIER);
    }
    cr_expect_lt((int)MC_CENSUS_NUMBER, (int)MC_TAG_ROUTE);
}

Test(calls, misuse_is_told)
{
    meshcoll_request_t *request = NULL, *none = NULL;
    int at;
    world_open();
    cr_expect_eq(meshcoll_iallreduce(NULL, in, out, 1, MESHCOLL_INT32, MESHCOLL_SUM, &request),
                 MESHCOLL_ERR_INVALID_ARG);
    for (int r = 0; r < RANKS; r++) { /* they take their numbers */
        cr_expect_eq(meshcoll_iallreduce(rank[r], in, out, 1, MESHCOLL_INT32, MESHCOLL_SUM, NULL),
                     MESHCOLL_ERR_INVALID_ARG);
        cr_expect_eq(meshcoll_begin(rank[r], NULL, &request), MESHCOLL_ERR_INVALID_ARG);
    }
    cr_expect_eq(meshcoll_waitall(-1, &none), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_waitall(1, NULL), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_waitany(1, &none, NULL), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(meshcoll_testany(0, NULL, &at), MESHCOLL_OK);
    static meshcoll_request_t *q[RANKS][MANY];
    for (int r = 0; r < RANKS; r++)
        q[r][0] = begin(r, 0, COUNT);
    request = q[0][0];
    cr_expect_eq(meshcoll_start(request), MESHCOLL_ERR_INVALID_ARG);
    finish(q, 1);
    cr_expect_eq(meshcoll_wait(request), MESHCOLL_ERR_INVALID_ARG, "it is the mesh's again");
    cr_expect_not_null(strstr(meshcoll_last_error(), "is complete"));
    world_close();
}

enum { REFUSED = 8 };

/* What one rank does wrong, and the others do with nothing to do, so that they need not wait for it. */
static int refused_call(int what, int r, bool wrong)
{
    static const size_t none[RANKS];
    const size_t *const counts = wrong ? NULL : none;
    int32_t *const at = wrong ? NULL : in[r][0];
    const size_t count = wrong ? 1 : 0;
    meshcoll_t *const m = rank[r];
    meshcoll_request_t *request = NULL, **const place = wrong ? NULL : &request;
    int status = MESHCOLL_OK;
    switch (what) {
    case 0:
        return meshcoll_allgatherv(m, at, 0, at, counts, NULL, MESHCOLL_INT32);
    case 1:
        status = meshcoll_iallgatherv(m, at, 0, at, counts, NULL, MESHCOLL_INT32, &request);
        break;
    case 2:
        return meshcoll_alltoallv(m, at, counts, NULL, at, counts, NULL, MESHCOLL_INT32);
    case 3:
        status = meshcoll_ibcast(m, at, at, 0, MESHCOLL_INT32, 0, place);
        break;
    case 4:
        status = meshcoll_bcast_init(m, at, at, count, MESHCOLL_INT32, 0, &request);
        break;
    case 5:
        status = meshcoll_allgatherv_init(m, at, 0, at, counts, NULL, MESHCOLL_INT32, &request);
        break;
    case 6:
        status = meshcoll_bcast_init(m, at, at, 0, MESHCOLL_INT32, 0, place);
        break;
    default:
        cr_assert_eq(meshcoll_group_begin(m), MESHCOLL_OK);
        (void)meshcoll_bcast(m, at, at, count, MESHCOLL_INT32, 0);
        return meshcoll_group_end(m);
    }
    meshcoll_free(request);
    return status;
}

/* The next call, and the next persistent request, have the same numbers on all ranks. */
Test(calls, refused_on_one_rank_take_their_numbers)
{
    static meshcoll_request_t *q[RANKS][MANY];
    world_open();
    for (int what = 0; what < REFUSED; what++) {
        for (int r = 0; r < RANKS; r++)
            cr_assert_eq(refused_call(what, r, r == 1), r == 1 ? MESHCOLL_ERR_INVALID_ARG : 0,
                         "case %d, rank %d: %s", what, r, meshcoll_last_error());
        for (int r = 0; r < RANKS; r++) {
            cr_assert_eq(rank[r]->calls.n, rank[0]->calls.n, "case %d", what);
            cr_assert_eq(rank[r]->calls.n_persistent, rank[0]->calls.n_persistent, "case %d", what);
        }
        for (int r = 0; r < RANKS; r++)
            q[r][0] = begin(r, 0, COUNT);
        finish(q, 1);
        for (int r = 0; r < RANKS; r++)
            expect_sum(r, 0, COUNT);
    }
    world_close();
}

static int enter(bool is_persistent, meshcoll_t *mesh, meshcoll_request_t **request)
{
    return is_persistent ? meshcoll_start(*request) : meshcoll_ibarrier(mesh, request);
}

static int count_inside(meshcoll_request_t *const *request, int n)
{
    int inside = 0;
    for (int r = 0; r < n; r++)
        inside += meshcoll_test(request[r]) == MESHCOLL_IN_PROGRESS;
    return inside;
}

/* Nobody leaves a barrier before the last has come. */
Test(calls, a_barrier_waits_for_all)
{
    meshcoll_request_t *request[RANKS];
    world_open();
    for (int is_persistent = 0; is_persistent < 2; is_persistent++) {
        for (int r = 0; r < RANKS && is_persistent; r++)
            cr_assert_eq(meshcoll_barrier_init(rank[r], &request[r]), MESHCOLL_OK);
        for (int r = 0; r < RANKS - 1; r++)
            cr_assert_eq(enter(is_persistent, rank[r], &request[r]), MESHCOLL_OK);
        for (int turn = 0; turn < 100; turn++)
            cr_assert_eq(count_inside(request, RANKS - 1), RANKS - 1, "somebody has left");
        cr_assert_eq(enter(is_persistent, rank[RANKS - 1], &request[RANKS - 1]), MESHCOLL_OK);
        bool left[RANKS] = {false};
        for (int turn = 0, n = 0; n < RANKS; turn++) {
            cr_assert_lt(turn, MOST_TURNS, "hangs");
            for (int r = 0; r < RANKS; r++)
                if (!left[r] && meshcoll_test(request[r]) == MESHCOLL_OK)
                    left[r] = ++n;
        }
    }
    for (int r = 0; r < RANKS; r++)
        meshcoll_free(request[r]);
    world_close();
}

/* Of two ranks that start alike one has run to its end at once, and the other has not: both refuse. */
Test(calls, a_run_is_waited_for_before_the_next)
{
    meshcoll_request_t *p[RANKS];
    world_open();
    for (int r = 0; r < RANKS; r++)
        p[r] = persistent(r, 0);
    for (int again = 0; again < 2; again++) {
        for (int r = 0; r < RANKS; r++) {
            cr_assert_eq(meshcoll_start(p[r]), MESHCOLL_OK);
            cr_expect_eq(meshcoll_start(p[r]), MESHCOLL_ERR_INVALID_ARG, "rank %d", r);
        }
        for (int turn = 0; count_inside(p, RANKS) > 0; turn++)
            cr_assert_lt(turn, MOST_TURNS, "hangs");
    }
    for (int r = 0; r < RANKS; r++) {
        cr_expect_eq(meshcoll_start(p[r]), MESHCOLL_OK, "told of: %s", meshcoll_last_error());
        meshcoll_free(p[r]);
    }
    world_close();
}

/* What was not waited for when the mesh went can be waited for, and goes. */
Test(calls, outlive_their_mesh)
{
    world_open();
    meshcoll_request_t *running = begin(0, 0, COUNT), *const idle = persistent(0, 1);
    world_close();
    cr_expect_eq(meshcoll_start(idle), MESHCOLL_ERR_INVALID_ARG);
    meshcoll_free(idle);
    cr_expect_eq(meshcoll_waitall(1, &running), MESHCOLL_ERR_INVALID_ARG);
    cr_expect_null(running);
}

/* Where there is nothing to combine, too, in place and not, bound before or not. */
Test(calls, logical_operations_of_one_rank_give_0_or_1)
{
    static const meshcoll_op_t op[] = {MESHCOLL_LAND, MESHCOLL_LOR, MESHCOLL_LXOR};
    meshcoll_t *lone;
    cr_assert_eq(mc_inproc_create("x=1", NULL, &lone), MESHCOLL_OK);
    for (int i = 0; i < 12; i++) {
        int32_t v[] = {7, 0, -1}, w[3] = {5, 5, 5}, *const to = i % 2 ? v : w;
        uint8_t bits[] = {6, 0}, bools[] = {6, 0};
        cr_assert_eq(meshcoll_allreduce(lone, v, to, 3, MESHCOLL_INT32, op[i % 3]), MESHCOLL_OK);
        cr_expect(to[0] == 1 && to[1] == 0 && to[2] == 1, "%s: %d %d %d",
                  meshcoll_op_name(op[i % 3]), to[0], to[1], to[2]);
        cr_assert_eq(meshcoll_reduce_scatter(lone, v, w, 3, MESHCOLL_INT32, op[i % 3]),
                     MESHCOLL_OK);
        cr_expect(w[0] == 1 && w[1] == 0 && w[2] == 1);
        cr_assert_eq(meshcoll_reduce(lone, bools, bools, 2, MESHCOLL_BOOL, MESHCOLL_MAX, 0),
                     MESHCOLL_OK);
        cr_expect(bools[0] == 1 && bools[1] == 0);
        cr_assert_eq(meshcoll_reduce(lone, bits, bits, 2, MESHCOLL_UINT8, MESHCOLL_BOR, 0),
                     MESHCOLL_OK);
        cr_expect(bits[0] == 6 && bits[1] == 0);
        bools[0] = 6;
        cr_assert_eq(meshcoll_bcast(lone, bools, bools, 2, MESHCOLL_BOOL, 0), MESHCOLL_OK);
        cr_expect_eq(bools[0], 6, "what reduces nothing leaves values alone");
    }
    meshcoll_destroy(lone);
}
