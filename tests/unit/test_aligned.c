/*
 * The aligned tree: which algorithms and strategies put brackets round a sum as it does, proved by the
 * symbolic machine, which sees nothing of the arithmetic that the claims are made by.
 */
#include "compose/planner/planner.h"
#include "mesh/aligned.h"
#include "plan/verify/verify.h"
#include "support/costs.h"
#include "support/plans.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const meshcoll_collective_t reducing[] = {MESHCOLL_REDUCE, MESHCOLL_REDUCE_SCATTER,
                                                 MESHCOLL_ALLREDUCE};

static const char *text_of(const mc_mesh_t *mesh, const mc_strategy_t *s)
{
    static char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_strategy_print(s, mesh, &text);
    return buffer;
}

/* Verifies all else too. */
static bool is_aligned(const mc_mesh_t *mesh, const mc_strategy_t *s, int32_t root,
                       const int32_t *number)
{
    static plans_t p;
    const mc_verify_options_t options = {
        .random_orders = 1, .seed = 3, .aligned = true, .number = number};
    plans_make(&p, mesh, s, root);
    const mc_world_t world = world_of(&p);
    const int status = mc_verify(&world, &options, NULL);
    cr_assert(!status || strstr(meshcoll_last_error(), "aligned tree"), "%s: %s", text_of(mesh, s),
              meshcoll_last_error());
    plans_free(&p);
    return !status;
}

/* For every root, in one segment and in three. */
static bool always_aligned(const mc_mesh_t *mesh, mc_strategy_t s, const int32_t *number)
{
    const int32_t roots = mc_moves[s.collective].rooted ? mesh->size : 1;
    bool aligned = true;
    for (s.segments = 1; s.segments <= 3; s.segments += 2)
        for (int32_t root = 0; root < roots && aligned; root++)
            aligned = is_aligned(mesh, &s, root, number);
    return aligned;
}

/* The tree itself ------------------------------------------------------------------------------------ */

static void print_tree(mc_text_t *text, int32_t first, int32_t n)
{
    if (n == 1) {
        mc_text_add(text, "%d", first);
        return;
    }
    const int32_t left = mc_aligned_left(n);
    mc_text_add(text, "(");
    print_tree(text, first, left);
    print_tree(text, first + left, n - left);
    mc_text_add(text, ")");
}

Test(aligned, tree_is_that_of_rfc_6962)
{
    static const char *const expected[] = {"0",
                                           "(01)",
                                           "((01)2)",
                                           "((01)(23))",
                                           "(((01)(23))4)",
                                           "(((01)(23))(45))",
                                           "(((01)(23))((45)6))"};
    for (size_t n = 0; n < MC_COUNT(expected); n++) {
        char buffer[64];
        mc_text_t text = mc_text(buffer, sizeof buffer);
        print_tree(&text, 0, (int32_t)n + 1);
        cr_expect_str_eq(buffer, expected[n]);
    }
}

/* What lets boxes of 2^k ranks be added up on their own. */
Test(aligned, tree_over_boxes_of_powers_of_two_is_of_their_trees)
{
    for (int32_t boxes = 2; boxes <= 40; boxes++)
        for (int32_t box = 1; box <= 64; box *= 2)
            cr_expect_eq(mc_aligned_left(boxes * box), mc_aligned_left(boxes) * box);
}

/* One line ------------------------------------------------------------------------------------------- */

Test(aligned, registry_says_which_algorithms_make_it_on_which_lengths)
{
    enum { LONGEST = 17 };
    for (int32_t a = 0; a < mc_n_algorithms; a++) {
        const mc_algorithm_t *const algorithm = &mc_algorithms[a];
        bool refuted = algorithm->aligned == MC_ALIGNED_ANY;
        if (!mc_moves[algorithm->collective].reduces)
            continue;
        for (int32_t len = 2; len <= LONGEST; len++) {
            mc_mesh_t mesh = {.ndims = 1, .size = len, .dim = {{"x", len}}};
            const mc_strategy_t s = {.collective = algorithm->collective,
                                     .segments = 1,
                                     .n_phases = 1,
                                     .phase = {{a, {0, 1}}}};
            const bool found = always_aligned(&mesh, s, NULL);
            cr_expect(found || !mc_algorithm_aligned(a, len), "%s on %d ranks: %s",
                      text_of(&mesh, &s), len, meshcoll_last_error());
            refuted = refuted || !found;
        }
        cr_expect(refuted, "%s:%s could say more", mc_moves[algorithm->collective].name,
                  algorithm->name);
    }
}

/* Its messages are as many and as large as its cost says, where that is a closed form: of a power of two. */
Test(aligned, costs_are_those_of_doubling_and_halving)
{
    for (int32_t len = 2; len <= 64; len *= 2) {
        mc_mesh_t mesh = {.ndims = 1, .size = len, .dim = {{"x", len}}};
        const mc_line_shape_t shape = {.mesh = &mesh,
                                       .line = mc_mesh_line(&mesh, (mc_dims_t){0, 1}, 0, 0),
                                       .share = {1, 1},
                                       .sharers = {1},
                                       .ports = {MC_PORTS_ALL}};
        const mc_phase_cost_t sum = cost_of(MESHCOLL_ALLREDUCE, "aligned", &shape),
                              sum_of = cost_of(MESHCOLL_ALLREDUCE, "doubling", &shape),
                              part = cost_of(MESHCOLL_REDUCE_SCATTER, "aligned", &shape),
                              part_of = cost_of(MESHCOLL_REDUCE_SCATTER, "halving", &shape);
        cr_expect(mc_ratio_equal(sum.once.dim[0].alpha, sum_of.once.dim[0].alpha));
        cr_expect(mc_ratio_equal(sum.once.dim[0].beta, sum_of.once.dim[0].beta));
        cr_expect(mc_ratio_equal(part.once.dim[0].alpha, part_of.once.dim[0].alpha));
        cr_expect(mc_ratio_equal(part.once.dim[0].beta, part_of.once.dim[0].beta));
        cr_expect(mc_ratio_equal(part.once.dim[0].gamma, part_of.once.dim[0].gamma));
    }
}

/* Grids ---------------------------------------------------------------------------------------------- */

typedef struct {
    const mc_mesh_t *mesh;
    const int32_t *number;
    mc_numbering_t numbering;
    uint32_t refused;
} sweep_t;

/* What is claimed is so; not all that is refused is otherwise. */
static bool check_claim(void *context, const mc_strategy_t *s)
{
    sweep_t *const w = context;
    const bool claimed = !mc_strategy_check_aligned(s, w->mesh, &w->numbering);
    if (claimed)
        cr_expect(always_aligned(w->mesh, *s, w->number), "%s: %s", text_of(w->mesh, s),
                  meshcoll_last_error());
    w->refused += !claimed;
    return true;
}

/* All that the planner considers is claimed, and so are some of those it does not. */
static void check_planned(const sweep_t *w, meshcoll_collective_t collective)
{
    mc_links_t links;
    mc_ranking_t ranking;
    const mc_planner_query_t query = {.bytes = 1e5, .max_segments = 4, .aligned = &w->numbering};
    cr_assert_eq(mc_links_parse("lab", w->mesh, &links), MESHCOLL_OK);
    cr_assert_eq(mc_planner_rank(collective, w->mesh, &links, &query, &ranking), MESHCOLL_OK);
    cr_expect_gt(ranking.n, 0);
    for (uint32_t i = 0; i < ranking.n; i++) {
        mc_strategy_t *const s = &ranking.list[i].strategy;
        cr_expect_eq(mc_strategy_check_aligned(s, w->mesh, &w->numbering), 0, "%s: %s",
                     text_of(w->mesh, s), meshcoll_last_error());
        s->segments = 1;
        cr_expect(always_aligned(w->mesh, *s, w->number), "%s: %s", text_of(w->mesh, s),
                  meshcoll_last_error());
    }
    free(ranking.list);
}

static void sweep(const char *text, const int32_t *number)
{
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse(text, &mesh), MESHCOLL_OK);
    sweep_t w = {.mesh = &mesh, .number = number, .numbering = mc_numbering(&mesh, number)};
    cr_assert_not(w.numbering.flat);
    for (size_t c = 0; c < MC_COUNT(reducing); c++) {
        cr_assert_eq(mc_strategy_each(reducing[c], &mesh, MC_PATHS_COVER, check_claim, &w), 0);
        check_planned(&w, reducing[c]);
    }
    cr_expect_gt(w.refused, 0, "%s", text);
}

/* Between boxes of unequal sizes one line of all ranks does, and for any numbers. */
static void sweep_ragged(const char *text, const int32_t *number)
{
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse(text, &mesh), MESHCOLL_OK);
    sweep_t w = {.mesh = &mesh, .numbering = mc_numbering(&mesh, number)};
    cr_assert(w.numbering.flat);
    for (size_t c = 0; c < MC_COUNT(reducing); c++) {
        w.refused = 0;
        cr_assert_eq(mc_strategy_each(reducing[c], &mesh, MC_PATHS_COVER, check_claim, &w), 0);
        check_planned(&w, reducing[c]);
        cr_expect_gt(w.refused, 0, "%s", text);
    }
}

Test(aligned, strategies_make_it_on_one_line_of_unequal_boxes)
{
    static const int32_t mixed[] = {3, 1, 5, 0, 2, 4};
    mc_mesh_t mesh;
    mc_strategy_t s;
    sweep_ragged("box=3+1+2", NULL);
    sweep_ragged("box=3+1+2", mixed);
    sweep_ragged("box=4+3", NULL);
    cr_assert_eq(mc_mesh_parse("box=4+2", &mesh), 0);
    const mc_numbering_t own = mc_numbering(&mesh, NULL);
    cr_assert_eq(mc_strategy_parse("reduce:mst(fold) reduce:mst(gpu) reduce:mst(box)",
                                   MESHCOLL_REDUCE, &mesh, &s),
                 0);
    cr_expect_eq(mc_strategy_check_aligned(&s, &mesh, &own), MESHCOLL_ERR_STRATEGY);
    cr_expect(strstr(meshcoll_last_error(), "unequal sizes"), "%s", meshcoll_last_error());
}

Test(aligned, strategies_make_it_on_grids)
{
    sweep("box=2,gpu=4", NULL);
    sweep("box=3,gpu=4", NULL);
    sweep("box=4,gpu=3", NULL); /* 3 ranks are no block of the tree: only one line of all does */
    sweep("box=1,gpu=5", NULL);
}

Test(aligned, the_search_finds_them_in_three_dimensions)
{
    const char *const meshes[] = {"rack=3,box=2,gpu=2", "rack=2,box=3,gpu=2"};
    for (size_t m = 0; m < MC_COUNT(meshes); m++) {
        mc_mesh_t mesh;
        mc_links_t links;
        mc_ranked_t best;
        cr_assert_eq(mc_mesh_parse(meshes[m], &mesh), MESHCOLL_OK);
        cr_assert_eq(mc_links_parse("lab", &mesh, &links), MESHCOLL_OK);
        const mc_numbering_t own = mc_numbering(&mesh, NULL);
        for (double bytes = 8; bytes < 1e9; bytes *= 1000) {
            const mc_planner_query_t query = {.bytes = bytes, .max_segments = 64, .aligned = &own};
            cr_assert_eq(mc_planner_best(MESHCOLL_ALLREDUCE, &mesh, &links, &query, &best), 0);
            cr_expect(is_aligned(&mesh, &best.strategy, 0, NULL), "%s: %s",
                      text_of(&mesh, &best.strategy), meshcoll_last_error());
        }
    }
}

/* Other numberings ----------------------------------------------------------------------------------- */

/* Ranks dealt out to the boxes in turn, as by mpirun --map-by node. */
Test(aligned, ranks_dealt_out_in_turn_are_added_up_across_boxes_first)
{
    int32_t by_turns[12];
    for (int32_t box = 0; box < 4; box++)
        for (int32_t gpu = 0; gpu < 3; gpu++)
            by_turns[box * 3 + gpu] = gpu * 4 + box;
    sweep("box=4,gpu=3", by_turns);
    mc_mesh_t mesh;
    mc_strategy_t s;
    cr_assert_eq(mc_mesh_parse("box=4,gpu=3", &mesh), 0);
    const mc_numbering_t n = mc_numbering(&mesh, by_turns);
    cr_assert_eq(mc_strategy_parse("allreduce:doubling(box) allreduce:fullmesh(gpu)",
                                   MESHCOLL_ALLREDUCE, &mesh, &s),
                 0);
    cr_expect_eq(mc_strategy_check_aligned(&s, &mesh, &n), 0, "%s", meshcoll_last_error());
    const mc_numbering_t own = mc_numbering(&mesh, NULL);
    cr_expect_eq(mc_strategy_check_aligned(&s, &mesh, &own), MESHCOLL_ERR_STRATEGY);
}

/* Blocks of 3, or no order at all: then plans on one line of all are made for the numbers. */
Test(aligned, ranks_in_no_order_of_the_mesh_stand_on_one_line)
{
    int32_t by_turns[12], mixed[12];
    mc_mesh_t mesh;
    mc_strategy_t s;
    for (int32_t r = 0; r < 12; r++) {
        by_turns[r] = r % 4 * 3 + r / 4;
        mixed[r] = r * 5 % 12;
    }
    cr_assert_eq(mc_mesh_parse("box=3,gpu=4", &mesh), 0);
    const mc_numbering_t turns = mc_numbering(&mesh, by_turns), none = mc_numbering(&mesh, mixed);
    cr_expect(turns.flat && none.flat);
    cr_assert_eq(mc_strategy_parse("allreduce:aligned(box*gpu)", MESHCOLL_ALLREDUCE, &mesh, &s), 0);
    cr_expect_eq(mc_strategy_check_aligned(&s, &mesh, &none), 0);
    cr_assert_eq(mc_strategy_parse("allreduce:doubling(gpu) allreduce:aligned(box)",
                                   MESHCOLL_ALLREDUCE, &mesh, &s),
                 0);
    cr_expect_eq(mc_strategy_check_aligned(&s, &mesh, &none), MESHCOLL_ERR_STRATEGY);
    cr_expect(strstr(meshcoll_last_error(), "communicator's order"), "%s", meshcoll_last_error());
}
