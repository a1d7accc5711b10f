/* Calls that are known again: many sizes and collectives in turn, and the same calls on other buffers. */
#include "runtime/call/cache.h"
#include "runtime/call/call.h"
#include "support/six.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 8, MOST = 12, ROOM = RANKS * MOST, PLACES = 5, MOST_TURNS = 100000 };

static int32_t in[RANKS][PLACES * ROOM], out[RANKS][PLACES * ROOM];

static int32_t value(int of, size_t i)
{
    return 1000 * of + (int32_t)i + 1;
}

/* What rank r has at i afterwards; 0: anything. */
static int32_t result(meshcoll_collective_t c, int r, size_t i, size_t count)
{
    const int from = (int)(i / count);
    const int32_t sum = 1000 * RANKS * (RANKS - 1) / 2;
    const size_t place = c == MESHCOLL_REDUCE_SCATTER ? (size_t)r * count + i : i;
    switch (c) {
    case MESHCOLL_BCAST:
        return i < count ? value(1, i) : 0;
    case MESHCOLL_REDUCE:
        return r == 1 && i < count ? sum + RANKS * value(0, i) : 0;
    case MESHCOLL_ALLREDUCE:
        return i < count ? sum + RANKS * value(0, i) : 0;
    case MESHCOLL_REDUCE_SCATTER:
        return i < count ? sum + RANKS * value(0, place) : 0;
    case MESHCOLL_SCATTER:
        return i < count ? value(1, (size_t)r * count + i) : 0;
    case MESHCOLL_GATHER:
        return r == 1 && from < RANKS ? value(from, i % count) : 0;
    case MESHCOLL_ALLGATHER:
        return from < RANKS ? value(from, i % count) : 0;
    default:
        return from < RANKS ? value(from, (size_t)r * count + i % count) : 0;
    }
}

/* Calls c on all ranks, at the buffers of `place`, and checks it. */
static void call(meshcoll_collective_t c, size_t count, int place, bool in_place)
{
    meshcoll_request_t *request[RANKS];
    for (int r = 0; r < RANKS; r++) {
        int32_t *const from = &in[r][place * ROOM], *const to = &out[r][place * ROOM];
        for (size_t i = 0; i < ROOM; i++) {
            from[i] = value(r, i);
            to[i] = in_place ? value(r, i) : -1;
        }
        const meshcoll_args_t args = {.size = sizeof args,
                                      .collective = c,
                                      .in = in_place ? to : from,
                                      .out = to,
                                      .count = count,
                                      .datatype = MESHCOLL_INT32,
                                      .root = c == MESHCOLL_ALLREDUCE ? 0 : 1};
        cr_assert_eq(meshcoll_begin(rank[r], &args, &request[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
    }
    for (int left = 1, turn = 0; left > 0; turn++) {
        cr_assert_lt(turn, MOST_TURNS, "hangs");
        left = 0;
        for (int r = 0; r < RANKS; r++)
            left += request[r] && meshcoll_testall(1, &request[r]) == MESHCOLL_IN_PROGRESS;
    }
    for (int r = 0; r < RANKS; r++)
        for (size_t i = 0; i < ROOM; i++) {
            const int32_t wanted = result(c, r, i, count);
            if (wanted)
                cr_assert_eq(out[r][place * ROOM + i], wanted,
                             "%s of %zu at %d on rank %d, element %zu: %d, expected %d",
                             meshcoll_collective_name(c), count, place, r, i,
                             out[r][place * ROOM + i], wanted);
        }
}

static bool whole(meshcoll_collective_t c)
{
    return c == MESHCOLL_BCAST || c == MESHCOLL_REDUCE || c == MESHCOLL_ALLREDUCE;
}

static uint32_t n_cached(const meshcoll_t *h)
{
    uint32_t n = 0;
    for (const mc_list_node_t *at = h->cache.requests.first; at; at = at->next)
        n++;
    cr_expect_eq(h->cache.n, n);
    return n;
}

/* The request that is bound to such a call, or could be. */
static const mc_cached_t *find(meshcoll_collective_t c, size_t count, int place)
{
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = c,
                                  .in = &in[2][place * ROOM],
                                  .out = &out[2][place * ROOM],
                                  .count = count,
                                  .datatype = MESHCOLL_INT32,
                                  .root = c == MESHCOLL_ALLREDUCE ? 0 : 1};
    return mc_cache_find(rank[2], &args, mc_cache_kind(&args, false));
}

Test(call_cache, eight_sizes_of_all_collectives_in_turn)
{
    const mc_cached_t *first[MESHCOLL_COLLECTIVES][SIZES];
    setenv("MESHCOLL_ADAPT", "off", 1); /* while calls learn they are not bound */
    world_open();
    for (int round = 0; round < 3; round++)
        for (size_t n = 0; n < SIZES; n++)
            for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
                const mc_cached_t *const r = find((meshcoll_collective_t)c, n + 1, 0);
                cr_assert_eq(r != NULL, round > 0);
                if (round == 1)
                    first[c][n] = r;
                cr_expect(round < 2 ||
                          (r == first[c][n] && r->in == &in[2][0] && r->out == &out[2][0]));
                call((meshcoll_collective_t)c, n + 1, 0, false);
            }
    cr_expect_eq(n_cached(rank[2]), SIZES * MESHCOLL_COLLECTIVES);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        for (int n = 0; n < SIZES; n++)
            for (int k = 0; k < n; k++)
                cr_expect_neq(first[c][n], first[c][k]);
    world_close();
}

/* Strategies with spans in scratch, in several segments, through other ranks. */
Test(call_cache, on_other_buffers)
{
    static const char *const forced[][2] = {{"allreduce", "allreduce:ring(box*gpu) segments=3"},
                                            {"bcast", "scatter:mst(box) bcast:mst(gpu) "
                                                      "allgather:ring(box)"},
                                            {"alltoall", "alltoall:digits(box*gpu)"}};
    setenv("MESHCOLL_ADAPT", "off", 1); /* while calls learn they are not bound */
    world_open();
    for (int way = 0; way < 2; way++) {
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
            for (int place = 0; place < 3 * PLACES; place++) {
                const meshcoll_collective_t which = (meshcoll_collective_t)c;
                call(which, MOST - 1, place % PLACES, false);
                if (whole(which))
                    call(which, MOST - 1, 3 * place % PLACES, true);
                if (place % 2)
                    call(which, MOST, place % PLACES, false);
            }
        for (int r = 0; r < RANKS && way == 0; r++)
            for (size_t i = 0; i < MC_COUNT(forced); i++) {
                int c = 0;
                while (strcmp(meshcoll_collective_name((meshcoll_collective_t)c), forced[i][0]))
                    c++;
                cr_assert_eq(meshcoll_set_strategy(rank[r], (meshcoll_collective_t)c, forced[i][1]),
                             MESHCOLL_OK, "%s", meshcoll_last_error());
            }
    }
    /* of each: out of place in two sizes, and in place */
    cr_expect_leq(n_cached(rank[2]), 2 * (2 * MESHCOLL_COLLECTIVES + 3));
    world_close();
}

/* More than are kept: the oldest serve others, and all stay right. */
Test(call_cache, more_than_are_kept)
{
    setenv("MESHCOLL_ADAPT", "off", 1); /* while calls learn they are not bound */
    world_open();
    for (int round = 0; round < 2; round++)
        for (size_t n = 1; n <= MOST; n++)
            for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
                call((meshcoll_collective_t)c, n, (int)n % PLACES, false);
                if (whole((meshcoll_collective_t)c))
                    call((meshcoll_collective_t)c, n, (int)n % PLACES, true);
            }
    cr_expect_leq(n_cached(rank[0]), MC_CACHED_REQUESTS);
    uint64_t steps = 0;
    for (mc_list_node_t *n = rank[0]->cache.requests.first; n; n = n->next)
        steps += mc_cached_of(n)->run.plan->n_steps;
    cr_expect_eq(rank[0]->cache.n_steps, steps);
    world_close();
}

Test(call_cache, fits_where_buffers_lie_alike)
{
    static char a[64], b[64];
    mc_cached_t k = {.in = a, .out = b, .in_bytes = 16, .out_bytes = 16, .apart = true};
    cr_expect(mc_cache_fits(&k, a + 16, b + 1));
    cr_expect(mc_cache_fits(&k, a, a + 16));
    cr_expect_not(mc_cache_fits(&k, a, a + 15), "overlap");
    cr_expect_not(mc_cache_fits(&k, a + 15, a), "overlap");
    cr_expect_not(mc_cache_fits(&k, a, a), "in place");
    cr_expect_not(mc_cache_fits(&k, NULL, b));
    cr_expect_not(mc_cache_fits(&k, a, NULL));
    k = (mc_cached_t){.in = a, .out = a, .in_bytes = 16, .out_bytes = 16};
    cr_expect(mc_cache_fits(&k, b, b));
    cr_expect_not(mc_cache_fits(&k, b, a));
    cr_expect_not(mc_cache_fits(&k, NULL, NULL));
    k = (mc_cached_t){.in = NULL, .out = b, .out_bytes = 16, .apart = true};
    cr_expect(mc_cache_fits(&k, NULL, a), "no input here");
    cr_expect(mc_cache_fits(&k, b, a));
    cr_expect_not(mc_cache_fits(&k, a, a), "in place, what was not");
}

Test(call_cache, kinds_tell_calls_apart)
{
    const size_t counts[1] = {1};
    const meshcoll_args_t a = {.size = sizeof a,
                               .collective = MESHCOLL_REDUCE,
                               .datatype = MESHCOLL_FLOAT32,
                               .op = MESHCOLL_MAX,
                               .root = 3};
    meshcoll_args_t other[] = {a, a, a, a};
    other[0].collective = MESHCOLL_BCAST;
    other[1].datatype = MESHCOLL_FLOAT64;
    other[2].op = MESHCOLL_SUM;
    other[3].root = 2;
    cr_expect_neq(mc_cache_kind(&a, true), mc_cache_kind(&a, false));
    for (size_t i = 0; i < MC_COUNT(other); i++)
        cr_expect_neq(mc_cache_kind(&a, false), mc_cache_kind(&other[i], false));
    meshcoll_args_t never[] = {a, a, a, a, a};
    never[0].strategy = "flat-star";
    never[1].counts = counts;
    never[2].op = (meshcoll_op_t)MESHCOLL_OPS;
    never[3].size = 1;
    never[4].datatype = (meshcoll_datatype_t)(MESHCOLL_FLOAT32 + 256);
    for (size_t i = 0; i < MC_COUNT(never); i++)
        cr_expect_eq(mc_cache_kind(&never[i], false), MC_KIND_ONCE);
}
