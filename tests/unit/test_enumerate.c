#include "compose/strategy/strategy.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    mc_mesh_t mesh;
    mc_strategy_t *strategy;
    size_t n, room;
} list_t;

static bool collect(void *context, const mc_strategy_t *strategy)
{
    list_t *list = context;
    if (list->n == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->strategy = realloc(list->strategy, list->room * sizeof *list->strategy);
        cr_assert_not_null(list->strategy);
    }
    list->strategy[list->n++] = *strategy;
    return true;
}

static list_t list_of(const char *mesh_text, meshcoll_collective_t collective, mc_paths_t which)
{
    list_t list = {.n = 0};
    cr_assert_eq(mc_mesh_parse(mesh_text, &list.mesh), MESHCOLL_OK);
    cr_assert_eq(mc_strategy_each(collective, &list.mesh, which, collect, &list), MESHCOLL_OK);
    return list;
}

static size_t count_of(const char *mesh_text, meshcoll_collective_t collective, mc_paths_t which)
{
    const list_t list = list_of(mesh_text, collective, which);
    free(list.strategy);
    return list.n;
}

static bool has(const list_t *list, const mc_strategy_t *strategy)
{
    for (size_t i = 0; i < list->n; i++)
        if (mc_strategy_equal(&list->strategy[i], strategy))
            return true;
    return false;
}

/* Bytes that are equal for equal strategies: unused phases are not compared. */
static int by_phases(const void *left, const void *right)
{
    const mc_strategy_t *a = left, *b = right;
    if (a->n_phases != b->n_phases)
        return a->n_phases - b->n_phases;
    return memcmp(a->phase, b->phase, sizeof *a->phase * (size_t)a->n_phases);
}

static void expect_sound(const char *mesh_text, mc_paths_t which)
{
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const list_t list = list_of(mesh_text, (meshcoll_collective_t)c, which);
        cr_expect_gt(list.n, 0u);
        for (size_t i = 0; i < list.n; i++) {
            const mc_strategy_t *s = &list.strategy[i];
            cr_assert_eq(mc_strategy_check(s, &list.mesh), MESHCOLL_OK, "%s: %s", mesh_text,
                         meshcoll_last_error());
            cr_assert_eq(s->segments, 1u);
            for (int32_t p = 0; p < s->n_phases; p++)
                cr_assert_null(mc_algorithms[s->phase[p].algorithm].parts);
        }
        qsort(list.strategy, list.n, sizeof *list.strategy, by_phases);
        for (size_t i = 1; i < list.n; i++)
            cr_assert_neq(by_phases(&list.strategy[i - 1], &list.strategy[i]), 0,
                          "%s: %s stands twice", mesh_text, meshcoll_collective_name(c));
        free(list.strategy);
    }
}

Test(enumerate, all_check_and_none_stands_twice)
{
    static const char *const text[] = {"x=1",     "x=2",         "x=8",         "x=1,y=1",
                                       "x=3,y=1", "box=4,gpu=8", "x=2,y=1,z=3", "x=1,y=1,z=5"};
    for (size_t i = 0; i < MC_COUNT(text); i++) {
        expect_sound(text[i], MC_PATHS_ALL);
        expect_sound(text[i], MC_PATHS_COVER);
    }
    expect_sound("rack=2,box=2,gpu=2", MC_PATHS_COVER);
}

/* The paths of one dimension, times the algorithms of their moves. */
Test(enumerate, one_dimension_by_hand)
{
    const size_t bcast = 3, reduce = 3, scatter = 2, gather = 2, allgather = 4, rs = 3, direct = 2;
    cr_expect_eq(count_of("x=8", MESHCOLL_BCAST, MC_PATHS_ALL), bcast + scatter * allgather);
    cr_expect_eq(count_of("x=8", MESHCOLL_REDUCE, MC_PATHS_ALL), reduce + rs * gather);
    cr_expect_eq(count_of("x=8", MESHCOLL_SCATTER, MC_PATHS_ALL), scatter);
    cr_expect_eq(count_of("x=8", MESHCOLL_GATHER, MC_PATHS_ALL), gather);
    cr_expect_eq(count_of("x=8", MESHCOLL_ALLGATHER, MC_PATHS_ALL), allgather + gather * bcast);
    cr_expect_eq(count_of("x=8", MESHCOLL_REDUCE_SCATTER, MC_PATHS_ALL), rs + reduce * scatter);
    cr_expect_eq(count_of("x=8", MESHCOLL_ALLREDUCE, MC_PATHS_ALL),
                 direct + rs * allgather + reduce * bcast + reduce * scatter * allgather +
                     rs * gather * bcast);
    cr_expect_eq(count_of("x=8", MESHCOLL_BCAST, MC_PATHS_COVER), 3u + 6u);
    cr_expect_eq(count_of("x=8", MESHCOLL_ALLREDUCE, MC_PATHS_COVER), 2u + 6u + 3u + 6u + 5u);
    cr_expect_eq(count_of("x=8", MESHCOLL_ALLTOALL, MC_PATHS_ALL), 3u);
}

/* Scatter on two dimensions: either first, or merged. */
Test(enumerate, two_dimensions_by_hand)
{
    cr_expect_eq(count_of("a=2,b=2", MESHCOLL_SCATTER, MC_PATHS_ALL), 2u * 2 * 2 + 2);
    cr_expect_eq(count_of("a=2,b=2", MESHCOLL_SCATTER, MC_PATHS_COVER), 2u * 2 + 2);
    /* either first, or merged; or b gathers, a exchanges but by Bruck's, b scatters */
    const size_t ends = 2 * 2;
    cr_expect_eq(count_of("a=2,b=2", MESHCOLL_ALLTOALL, MC_PATHS_ALL), 2 * 9 + 3 + ends * 2);
    /* 6 orders; a pair merged before or after the third; all three merged; c gathers, a and b in either
     * order or merged, c scatters */
    cr_expect_eq(count_of("a=2,b=2,c=2", MESHCOLL_ALLTOALL, MC_PATHS_ALL),
                 6 * 27 + 4 * 9 + 3 + ends * (2 * 4 + 2));
    /* both direct: 2 orders, or merged, where there is one more; one cut: 3 interleavings; both cut: 6 and those with merged
     * moves: both, only the scatter, only the allgather */
    const size_t direct = 2 * 9 + 4, one = 2 * 3 * 24, plain = 6 * 64;
    const size_t merged = 2 * 4 + 2 * (2 * 16) + 4 * (2 * 4);
    cr_expect_eq(count_of("a=2,b=2", MESHCOLL_BCAST, MC_PATHS_ALL), direct + one + plain + merged);
}

Test(enumerate, dimensions_of_one_do_not_count)
{
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const size_t n = count_of("a=3,b=4", (meshcoll_collective_t)c, MC_PATHS_ALL);
        cr_expect_eq(count_of("a=3,x=1,b=4", (meshcoll_collective_t)c, MC_PATHS_ALL), n);
        cr_expect_eq(count_of("x=1,a=3,b=4,y=1", (meshcoll_collective_t)c, MC_PATHS_ALL), n);
    }
}

Test(enumerate, a_single_rank_has_one_phase)
{
    const list_t list = list_of("a=1,b=1", MESHCOLL_BCAST, MC_PATHS_ALL);
    for (size_t i = 0; i < list.n; i++)
        cr_expect_geq(list.strategy[i].n_phases, 1);
    cr_expect_gt(list.n, 0u);
    free(list.strategy);
}

Test(enumerate, the_named_options_are_among_them)
{
    static const struct {
        const char *name;
        meshcoll_collective_t collective;
    } named[] = {{"option1", MESHCOLL_BCAST},
                 {"option2", MESHCOLL_BCAST},
                 {"option3", MESHCOLL_BCAST},
                 {"flat-mst", MESHCOLL_BCAST},
                 {"flat-ring", MESHCOLL_ALLGATHER}};
    for (size_t i = 0; i < MC_COUNT(named); i++) {
        mc_strategy_t strategy;
        const list_t list = list_of("box=4,gpu=8", named[i].collective, MC_PATHS_ALL);
        cr_assert_eq(mc_strategy_parse(named[i].name, named[i].collective, &list.mesh, &strategy),
                     MESHCOLL_OK, "%s", meshcoll_last_error());
        cr_expect(has(&list, &strategy), "%s", named[i].name);
        free(list.strategy);
    }
}

static bool same_path(const mc_strategy_t *a, const mc_strategy_t *b)
{
    bool same = a->n_phases == b->n_phases;
    for (int32_t i = 0; same && i < a->n_phases; i++)
        same = memcmp(&a->phase[i].dims, &b->phase[i].dims, sizeof a->phase[i].dims) == 0 &&
               mc_algorithms[a->phase[i].algorithm].collective ==
                   mc_algorithms[b->phase[i].algorithm].collective;
    return same;
}

/* Each strategy of ALL has its path in COVER, with each of its algorithms in that phase. */
static bool covered(const list_t *cover, const mc_strategy_t *strategy)
{
    unsigned phases = 0;
    for (size_t i = 0; i < cover->n; i++)
        for (int32_t p = 0; same_path(&cover->strategy[i], strategy) && p < strategy->n_phases; p++)
            if (cover->strategy[i].phase[p].algorithm == strategy->phase[p].algorithm)
                phases |= 1u << p;
    return phases == (1u << strategy->n_phases) - 1;
}

static bool is_turned(const mc_strategy_t *strategy)
{
    for (int32_t i = 0; i < strategy->n_phases; i++)
        if (mc_algorithms[strategy->phase[i].algorithm].turned)
            return true;
    return false;
}

/* COVER alone has what only a network calls for. */
Test(enumerate, cover_has_every_algorithm_in_every_phase)
{
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const bool two = c != MESHCOLL_ALLREDUCE; /* 22296 x 862 takes too long */
        const char *mesh = two ? "a=2,b=3" : "a=5";
        const list_t all = list_of(mesh, (meshcoll_collective_t)c, MC_PATHS_ALL);
        const list_t cover = list_of(mesh, (meshcoll_collective_t)c, MC_PATHS_COVER);
        for (size_t i = 0; i < all.n; i++)
            cr_assert(covered(&cover, &all.strategy[i]), "%s %zu", meshcoll_collective_name(c), i);
        for (size_t i = 0; i < cover.n; i++)
            cr_assert_neq(has(&all, &cover.strategy[i]), is_turned(&cover.strategy[i]));
        free(all.strategy);
        free(cover.strategy);
    }
}

static bool stop_at_five(void *context, const mc_strategy_t *strategy)
{
    (void)strategy;
    return ++*(int *)context < 5;
}

Test(enumerate, stops_when_told)
{
    mc_mesh_t mesh;
    mc_mesh_parse("a=2,b=3", &mesh);
    for (int which = MC_PATHS_COVER; which <= MC_PATHS_ALL; which++) {
        int n = 0;
        cr_expect_eq(mc_strategy_each(MESHCOLL_BCAST, &mesh, (mc_paths_t)which, stop_at_five, &n),
                     MESHCOLL_OK);
        cr_expect_eq(n, 5);
    }
}

Test(enumerate, refuses_what_is_no_collective)
{
    int n = 0;
    mc_mesh_t mesh;
    mc_mesh_parse("a=2,b=3", &mesh);
    cr_expect_eq(mc_strategy_each(MESHCOLL_COLLECTIVES, &mesh, MC_PATHS_ALL, stop_at_five, &n),
                 MESHCOLL_ERR_INVALID_ARG);
    mesh.dim[0].extent = 0;
    cr_expect_lt(mc_strategy_each(MESHCOLL_BCAST, &mesh, MC_PATHS_ALL, stop_at_five, &n), 0);
    cr_expect_eq(n, 0);
}
