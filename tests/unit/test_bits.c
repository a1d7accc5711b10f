/*
 * One strategy gives all ranks the same bits, whatever is added: sums that round, minima and maxima of
 * values that do not commute (NaN, signed zeros).
 */
#include "compose/strategy/strategy.h"
#include "mesh/aligned.h"
#include "runtime/element/datatype.h"
#include "support/element.h"
#include "support/inproc.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 6, COUNT = 24, ELEMENT = 16 };

typedef struct {
    meshcoll_t *rank[RANKS];
    mc_mesh_t mesh;
    meshcoll_datatype_t type;
    meshcoll_op_t op;
    uint32_t strategies;
    const char *expected; /* the bits that all strategies give; NULL: each its own */
} world_t;

static mc_number_t value_of(int rank, int i)
{
    static const double odd[] = {NAN, -0.0, 0.0, 1.0 / 3, -2.5, 1e8, 3.7e-3};
    const double x = odd[(rank * 5 + i * 3) % (int)MC_COUNT(odd)] * (i % 4 ? 1 : rank + 1);
    return (mc_number_t){x, odd[(rank + i) % (int)MC_COUNT(odd)]};
}

static void run(meshcoll_request_t *const request[RANKS])
{
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(meshcoll_start(request[r]), MESHCOLL_OK);
    for (int left = 1, turns = 0; left; turns++) {
        left = 0;
        for (int r = 0; r < RANKS; r++)
            left += meshcoll_test(request[r]) == MESHCOLL_IN_PROGRESS;
        cr_assert_lt(turns, 100000, "%s hangs", meshcoll_request_strategy(request[0]));
    }
}

static bool check(void *context, const mc_strategy_t *strategy)
{
    world_t *const w = context;
    char text[MC_STRATEGY_TEXT];
    _Alignas(16) char in[RANKS][COUNT * ELEMENT], out[RANKS][COUNT * ELEMENT];
    meshcoll_request_t *request[RANKS];
    mc_text_t printed = mc_text(text, sizeof text);
    mc_strategy_print(strategy, &w->mesh, &printed);
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < COUNT; i++)
            mc_element_set(w->type, in[r], (size_t)i, value_of(r, i));
        const meshcoll_args_t args = {.size = sizeof args,
                                      .collective = MESHCOLL_ALLREDUCE,
                                      .in = in[r],
                                      .out = out[r],
                                      .count = COUNT,
                                      .datatype = w->type,
                                      .op = w->op,
                                      .strategy = text};
        cr_assert_eq(meshcoll_init(w->rank[r], &args, &request[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
    }
    run(request);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(memcmp(out[r], out[0], COUNT * meshcoll_datatype_size(w->type)), 0,
                     "%s, %s %s: rank %d differs", text, meshcoll_datatype_name(w->type),
                     meshcoll_op_name(w->op), r);
        meshcoll_free(request[r]);
    }
    if (w->expected)
        cr_assert_eq(memcmp(out[0], w->expected, COUNT * meshcoll_datatype_size(w->type)), 0,
                     "%s, %s %s: other bits", text, meshcoll_datatype_name(w->type),
                     meshcoll_op_name(w->op));
    w->strategies++;
    return true;
}

static void check_type(const char *mesh, mc_paths_t which, meshcoll_datatype_t type)
{
    for (int op = 0; op < MESHCOLL_OPS; op++) {
        world_t w = {.type = type, .op = (meshcoll_op_t)op};
        if (meshcoll_op_check(w.op, type))
            continue;
        cr_assert_eq(mc_mesh_parse(mesh, &w.mesh), 0);
        cr_assert_eq(mc_inproc_create(mesh, NULL, w.rank), MESHCOLL_OK);
        cr_assert_eq(mc_strategy_each(MESHCOLL_ALLREDUCE, &w.mesh, which, check, &w), 0);
        cr_assert_gt(w.strategies, 10);
        for (int r = 0; r < RANKS; r++)
            meshcoll_destroy(w.rank[r]);
    }
}

static void check_mesh(const char *mesh, mc_paths_t which)
{
    const meshcoll_datatype_t types[] = {
        MESHCOLL_FLOAT32,     MESHCOLL_FLOAT64,     MESHCOLL_FLOAT16,   MESHCOLL_BFLOAT16,
        MESHCOLL_FLOAT8_E4M3, MESHCOLL_FLOAT8_E5M2, MESHCOLL_COMPLEX64, MESHCOLL_COMPLEX128};
    for (size_t i = 0; i < MC_COUNT(types); i++)
        check_type(mesh, which, types[i]);
}

Test(bits, are_the_same_on_all_ranks_of_a_line)
{
    check_mesh("x=6", MC_PATHS_ALL);
}

Test(bits, are_the_same_on_all_ranks_of_a_grid)
{
    check_mesh("box=2,gpu=3", MC_PATHS_COVER);
    check_mesh("box=3,gpu=2", MC_PATHS_COVER);
}

Test(bits, are_the_same_on_all_ranks_of_boxes_of_unequal_sizes)
{
    check_mesh("box=3+1+2", MC_PATHS_COVER);
}

/* Strategies of the aligned tree, in one segment and in more ----------------------------------------- */

/* Added up here, by the definition. */
static void add_up(const world_t *w, const char in[RANKS][COUNT * ELEMENT], int first, int n,
                   char *sum)
{
    char right[COUNT * ELEMENT];
    if (n == 1) {
        memcpy(sum, in[first], COUNT * ELEMENT);
        return;
    }
    const int left = mc_aligned_left(n);
    add_up(w, in, first, left, sum);
    add_up(w, in, first + left, n - left, right);
    mc_kernel(w->type, w->op)(sum, sum, right, COUNT);
}

static bool check_aligned(void *context, const mc_strategy_t *strategy)
{
    world_t *const w = context;
    mc_strategy_t s = *strategy;
    const mc_numbering_t own = mc_numbering(&w->mesh, NULL);
    if (mc_strategy_check_aligned(&s, &w->mesh, &own))
        return true;
    for (s.segments = 1; s.segments <= 5; s.segments += 2)
        check(w, &s);
    return true;
}

static bool check_text(world_t *w, const char *text)
{
    mc_strategy_t s;
    cr_assert_eq(mc_strategy_parse(text, MESHCOLL_ALLREDUCE, &w->mesh, &s), 0, "%s",
                 meshcoll_last_error());
    return check_aligned(w, &s);
}

static void check_tree(const char *mesh, const char *all, meshcoll_datatype_t type,
                       meshcoll_op_t op)
{
    static const char *const flat[] = {"allreduce:aligned(%s)",
                                       "reduce_scatter:aligned(%s) allgather:ring(%s)",
                                       "reduce:aligned(%s) bcast:chain(%s)"};
    char text[128];
    static _Alignas(16) char in[RANKS][COUNT * ELEMENT], sum[COUNT * ELEMENT];
    world_t w = {.type = type, .op = op, .expected = sum};
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            mc_element_set(type, in[r], (size_t)i, value_of(r, i));
    add_up(&w, in, 0, RANKS, sum);
    cr_assert_eq(mc_mesh_parse(mesh, &w.mesh), 0);
    cr_assert_eq(mc_inproc_create(mesh, NULL, w.rank), MESHCOLL_OK);
    cr_assert_eq(mc_strategy_each(MESHCOLL_ALLREDUCE, &w.mesh, MC_PATHS_ALL, check_aligned, &w), 0);
    for (size_t i = 0; i < MC_COUNT(flat); i++) {
        snprintf(text, sizeof text, flat[i], all, all);
        check_text(&w, text);
    }
    cr_assert_geq(w.strategies, 9);
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(w.rank[r]);
}

Test(bits, are_the_same_by_all_strategies_of_the_aligned_tree)
{
    const meshcoll_datatype_t types[] = {MESHCOLL_FLOAT32, MESHCOLL_FLOAT16, MESHCOLL_COMPLEX64,
                                         MESHCOLL_FLOAT8_E4M3};
    for (size_t i = 0; i < MC_COUNT(types); i++) {
        check_tree("box=3,gpu=2", "box*gpu", types[i], MESHCOLL_SUM);
        check_tree("box=2,gpu=3", "box*gpu", types[i], MESHCOLL_PROD);
        check_tree("box=3+1+2", "box*gpu*fold", types[i], MESHCOLL_SUM);
    }
    check_tree("box=3,gpu=2", "box*gpu", MESHCOLL_FLOAT64,
               MESHCOLL_MAX); /* NaN, and zeros of either sign */
}
