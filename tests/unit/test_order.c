/*
 * Operations that do not commute: which strategies reduce in the order of ranks, proved by the
 * verifier for all of them on small meshes, and what the library does with that.
 */
#include "compose/planner/planner.h"
#include "plan/verify/verify.h"
#include "support/inproc.h"
#include "support/plans.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

/* The claim and the proof -------------------------------------------------------------------------- */

typedef struct {
    const mc_mesh_t *mesh;
    uint32_t kept, broken;
} sweep_t;

static bool in_order(const mc_mesh_t *mesh, const mc_strategy_t *s, int32_t root)
{
    static plans_t p;
    const mc_verify_options_t options = {.random_orders = 1, .seed = 5, .in_order = true};
    plans_make(&p, mesh, s, root);
    const mc_world_t world = world_of(&p);
    const int status = mc_verify(&world, &options, NULL);
    cr_assert(!status || strstr(meshcoll_last_error(), "in the order of ranks"), "%s",
              meshcoll_last_error());
    plans_free(&p);
    return !status;
}

/* What is said to keep the order does for every root, and what is said not to does not for some, of the
 * roots that lead a line of a ragged mesh or of the others. On its short lines a chain may. */
static void check_roots(sweep_t *sweep, const mc_strategy_t *strategy, bool moved)
{
    char name[MC_STRATEGY_TEXT];
    mc_strategy_t s = *strategy;
    mc_text_t text = mc_text(name, sizeof name);
    mc_strategy_print(&s, sweep->mesh, &text);
    const int32_t roots = mc_moves[s.collective].rooted ? sweep->mesh->size : 1;
    bool kept = true, claimed = true, any = false;
    for (int32_t root = 0; root < roots; root++) {
        const mc_mesh_t led = mc_mesh_led_by(sweep->mesh, root);
        if (mc_mesh_leader_moved(&led) != moved)
            continue;
        any = true;
        claimed = mc_strategy_check_order(&s, &led) == MESHCOLL_OK;
        for (s.segments = 1; s.segments <= 2; s.segments++)
            kept = in_order(sweep->mesh, &s, root) && kept;
    }
    if (!any)
        return;
    cr_expect(kept == claimed || (kept && sweep->mesh->ragged), "%s: claimed %d, found %d", name,
              claimed, kept);
    *(claimed ? &sweep->kept : &sweep->broken) += 1;
}

static bool check_claim(void *context, const mc_strategy_t *strategy)
{
    check_roots(context, strategy, false);
    check_roots(context, strategy, true);
    return true;
}

static void check_composites(sweep_t *sweep, meshcoll_collective_t collective)
{
    mc_strategy_t s = {.collective = collective, .segments = 1, .n_phases = 1};
    for (int32_t a = 0; a < mc_n_algorithms; a++)
        if (mc_algorithms[a].parts && mc_algorithms[a].collective == collective) {
            s.phase[0] = (mc_phase_t){a, {0, sweep->mesh->ndims}};
            check_claim(sweep, &s);
        }
}

static void sweep_mesh(const char *text, mc_paths_t which)
{
    static const meshcoll_collective_t reducing[] = {MESHCOLL_REDUCE, MESHCOLL_REDUCE_SCATTER,
                                                     MESHCOLL_ALLREDUCE};
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse(text, &mesh), MESHCOLL_OK);
    for (size_t c = 0; c < MC_COUNT(reducing); c++) {
        sweep_t sweep = {.mesh = &mesh};
        cr_assert_eq(mc_strategy_each(reducing[c], &mesh, which, check_claim, &sweep), MESHCOLL_OK);
        check_composites(&sweep, reducing[c]);
        cr_assert_gt(sweep.kept, 0, "%s", text);
        cr_assert_gt(sweep.broken, 0, "%s", text);
    }
}

Test(order, is_proved_on_lines)
{
    sweep_mesh("x=3", MC_PATHS_ALL);
    sweep_mesh("x=5", MC_PATHS_ALL);
    sweep_mesh("x=8", MC_PATHS_ALL);
}

Test(order, is_proved_on_boxes_of_unequal_sizes)
{
    sweep_mesh("box=3+1+2", MC_PATHS_COVER);
    sweep_mesh("box=4+3", MC_PATHS_COVER);
    sweep_mesh("box=2+1", MC_PATHS_ALL);
}

Test(order, is_proved_on_grids)
{
    sweep_mesh("box=3,gpu=3", MC_PATHS_ALL);
    sweep_mesh("box=3,gpu=4", MC_PATHS_COVER);
    sweep_mesh("box=1,gpu=5", MC_PATHS_COVER);
}

/* The planner ---------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t n;
    const mc_mesh_t *mesh;
} tally_t;

static bool tally(void *context, const mc_strategy_t *s)
{
    tally_t *const t = context;
    t->n += mc_strategy_check_order(s, t->mesh) == MESHCOLL_OK;
    return true;
}

/* It considers exactly those that keep the order, also where it searches. */
Test(order, the_planner_chooses_among_those_that_keep_it)
{
    const char *const meshes[] = {"x=6", "box=3,gpu=4", "box=1,gpu=4", "box=3+1"};
    for (size_t m = 0; m < MC_COUNT(meshes); m++)
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
            mc_mesh_t mesh;
            mc_links_t links;
            mc_ranking_t ranking;
            const meshcoll_collective_t collective = (meshcoll_collective_t)c;
            const mc_planner_query_t query = {.bytes = 1e5, .max_segments = 4, .in_order = true};
            cr_assert_eq(mc_mesh_parse(meshes[m], &mesh), MESHCOLL_OK);
            cr_assert_eq(mc_links_parse("lab", &mesh, &links), MESHCOLL_OK, "%s",
                         meshcoll_last_error());
            cr_assert_eq(mc_planner_rank(collective, &mesh, &links, &query, &ranking), MESHCOLL_OK);
            tally_t wanted = {.mesh = &mesh};
            cr_assert_eq(mc_strategy_each(collective, &mesh, MC_PATHS_ALL, tally, &wanted), 0);
            cr_expect_eq(ranking.n, wanted.n, "%s on %s: %u, expected %u",
                         meshcoll_collective_name(collective), meshes[m], ranking.n, wanted.n);
            for (uint32_t i = 0; i < ranking.n; i++)
                cr_expect_eq(mc_strategy_check_order(&ranking.list[i].strategy, &mesh), 0);
            free(ranking.list);
        }
}

Test(order, the_search_keeps_it_in_three_dimensions)
{
    mc_mesh_t mesh;
    mc_links_t links;
    mc_ranked_t best;
    cr_assert_eq(mc_mesh_parse("rack=2,box=3,gpu=3", &mesh), MESHCOLL_OK);
    cr_assert_eq(mc_links_parse("lab", &mesh, &links), MESHCOLL_OK);
    for (double bytes = 8; bytes < 1e9; bytes *= 100) {
        const mc_planner_query_t query = {.bytes = bytes, .max_segments = 64, .in_order = true};
        cr_assert_eq(mc_planner_best(MESHCOLL_ALLREDUCE, &mesh, &links, &query, &best),
                     MESHCOLL_OK);
        cr_expect(in_order(&mesh, &best.strategy, 0), "%s", meshcoll_last_error());
    }
}

/* Runs: 2 x 2 matrices modulo 2^16, whose products do not commute ------------------------------------ */

enum { RANKS = 6, COUNT = 37 };

typedef struct {
    uint16_t at[4];
} matrix_t; /* one uint64 */

static matrix_t product(matrix_t x, matrix_t y)
{
    matrix_t z;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            z.at[2 * i + j] = (uint16_t)((unsigned)x.at[2 * i] * y.at[j] +
                                         (unsigned)x.at[2 * i + 1] * y.at[2 + j]);
    return z;
}

static void multiply(void *context, void *dst, const void *a, const void *b, size_t count,
                     meshcoll_datatype_t datatype)
{
    cr_assert_eq(datatype, MESHCOLL_UINT64);
    *(size_t *)context += count;
    for (size_t i = 0; i < count; i++)
        ((matrix_t *)dst)[i] = product(((const matrix_t *)a)[i], ((const matrix_t *)b)[i]);
}

static matrix_t matrix_of(int rank, size_t i)
{
    return (matrix_t){{(uint16_t)(rank + 2), (uint16_t)(3 * i + 1), (uint16_t)(rank * 7 + (int)i),
                       (uint16_t)(i + 5)}};
}

typedef struct {
    meshcoll_t *rank[RANKS];
    meshcoll_op_t op;
    size_t multiplied;
} world_t;

static void world_open(world_t *w, const char *mesh, int commutative)
{
    w->multiplied = 0;
    cr_assert_eq(mc_inproc_create(mesh, NULL, w->rank), MESHCOLL_OK);
    cr_assert_eq(meshcoll_op_create(multiply, commutative, &w->multiplied, &w->op), MESHCOLL_OK);
}

static void world_close(world_t *w)
{
    for (int r = 0; r < RANKS; r++)
        meshcoll_destroy(w->rank[r]);
    cr_assert_eq(meshcoll_op_free(w->op), MESHCOLL_OK);
}

static void check_result(meshcoll_collective_t collective, int rank, int root, const matrix_t *out)
{
    const size_t first = collective == MESHCOLL_REDUCE_SCATTER ? (size_t)rank * COUNT : 0;
    for (size_t i = 0; i < COUNT && (collective != MESHCOLL_REDUCE || rank == root); i++) {
        matrix_t right = matrix_of(0, first + i);
        for (int r = 1; r < RANKS; r++)
            right = product(right, matrix_of(r, first + i));
        cr_assert_eq(memcmp(&out[i], &right, sizeof right), 0, "%s: rank %d: element %zu",
                     meshcoll_collective_name(collective), rank, i);
    }
}

/* Twice, as persistent operations are. */
static void run(world_t *w, meshcoll_collective_t collective, int root, bool in_place,
                const char *strategy)
{
    static matrix_t in[RANKS][RANKS * COUNT], out[RANKS][COUNT];
    meshcoll_request_t *request[RANKS];
    const bool blocks = collective == MESHCOLL_REDUCE_SCATTER;
    for (int r = 0; r < RANKS; r++) {
        matrix_t *const to = !in_place ? out[r] : blocks ? in[r] + r * COUNT : in[r];
        const meshcoll_args_t args = {.size = sizeof args,
                                      .collective = collective,
                                      .in = in[r],
                                      .out = to,
                                      .count = COUNT,
                                      .datatype = MESHCOLL_UINT64,
                                      .op = w->op,
                                      .root = root,
                                      .strategy = strategy};
        cr_assert_eq(meshcoll_init(w->rank[r], &args, &request[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
    }
    for (int again = 0; again < 2; again++) {
        for (int r = 0; r < RANKS; r++)
            for (size_t i = 0; i < RANKS * COUNT; i++)
                in[r][i] = matrix_of(r, i);
        for (int r = 0; r < RANKS; r++)
            cr_assert_eq(meshcoll_start(request[r]), MESHCOLL_OK);
        for (int left = 1; left;) {
            left = 0;
            for (int r = 0; r < RANKS; r++)
                left += meshcoll_test(request[r]) == MESHCOLL_IN_PROGRESS;
        }
        for (int r = 0; r < RANKS; r++)
            check_result(collective, r, root,
                         !in_place ? out[r]
                         : blocks  ? in[r] + r * COUNT
                                   : in[r]);
    }
    for (int r = 0; r < RANKS; r++)
        meshcoll_free(request[r]);
}

Test(order, users_operations_reduce_in_it)
{
    const char *const meshes[] = {"x=6", "box=2,gpu=3", "box=3,gpu=2", "box=3+1+2", "box=1+5"};
    for (size_t m = 0; m < MC_COUNT(meshes); m++) {
        world_t w;
        world_open(&w, meshes[m], 0);
        for (int in_place = 0; in_place < 2; in_place++) {
            for (int root = 0; root < RANKS; root++)
                run(&w, MESHCOLL_REDUCE, root, in_place, NULL);
            run(&w, MESHCOLL_REDUCE_SCATTER, 0, in_place, NULL);
            run(&w, MESHCOLL_ALLREDUCE, 0, in_place, NULL);
        }
        cr_assert_gt(w.multiplied, 0);
        world_close(&w);
    }
}

Test(order, forced_strategies_that_keep_it_run)
{
    world_t w;
    world_open(&w, "box=2,gpu=3", 0);
    for (int root = 0; root < RANKS; root++) {
        run(&w, MESHCOLL_REDUCE, root, false, "reduce:star(gpu) reduce:mst(box) segments=3");
        run(&w, MESHCOLL_REDUCE, root, true, "reduce:mst(box*gpu)");
    }
    run(&w, MESHCOLL_ALLREDUCE, 0, true, "allreduce:fullmesh(gpu) allreduce:fullmesh(box)");
    run(&w, MESHCOLL_ALLREDUCE, 0, false, "allreduce:mst(box*gpu)");
    world_close(&w);
}

static int init_forced(const world_t *w, const char *strategy)
{
    static matrix_t in[COUNT], out[COUNT];
    meshcoll_request_t *request = NULL;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = in,
                                  .out = out,
                                  .count = COUNT,
                                  .datatype = MESHCOLL_UINT64,
                                  .op = w->op,
                                  .strategy = strategy};
    const int status = meshcoll_init(w->rank[0], &args, &request);
    if (!status)
        meshcoll_free(request);
    return status;
}

Test(order, forced_strategies_that_do_not_are_refused)
{
    world_t w;
    world_open(&w, "box=2,gpu=3", 0);
    cr_assert_eq(init_forced(&w, "allreduce:ring(box*gpu)"), MESHCOLL_ERR_STRATEGY);
    const char *const why = meshcoll_last_error();
    cr_expect(strstr(why, "does not commute") && strstr(why, "allreduce:ring(box*gpu)") &&
                  strstr(why, "\" does"),
              "%s", why);
    cr_assert_eq(init_forced(&w, "allreduce:fullmesh(box) allreduce:fullmesh(gpu)"),
                 MESHCOLL_ERR_STRATEGY);
    cr_expect(strstr(meshcoll_last_error(), "before gpu is reduced"), "%s", meshcoll_last_error());
    world_close(&w);
    world_open(&w, "box=2,gpu=3", 1);
    cr_expect_eq(init_forced(&w, "allreduce:ring(box*gpu)"), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    world_close(&w);
}
