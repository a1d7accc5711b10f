/* The planner on boxes of unequal sizes. */
#include "compose/planner/planner.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* Boxes of unequal sizes: all strategies are priced as their phases add up, none below the bound, and the
 * cheapest alone is the first of them. */
Test(ragged, prices_are_sound)
{
    static const char *const text[] = {"box=4+3+1", "box=2+1",     "box=8+7",    "box=8+8+4",
                                       "box=1+6",   "box=3+3+1+1", "box=16x8+4", "box=17+16"};
    for (size_t i = 0; i < MC_COUNT(text); i++)
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
            for (double bytes = 64; bytes < 1e9; bytes *= 64) {
                const meshcoll_collective_t collective = (meshcoll_collective_t)c;
                const mc_planner_query_t query = {
                    .root = 1, .bytes = bytes, .max_segments = 16, .most = 20};
                mc_mesh_t mesh;
                mc_links_t links;
                mc_ranking_t ranking;
                mc_ranked_t best;
                cr_assert_eq(mc_mesh_parse(text[i], &mesh), 0);
                cr_assert_eq(mc_links_parse("lab", &mesh, &links), 0);
                const double bound = mc_lower_bound(collective, &mesh, &links, bytes);
                cr_assert_eq(mc_planner_rank(collective, &mesh, &links, &query, &ranking), 0, "%s",
                             meshcoll_last_error());
                cr_assert_eq(mc_planner_best(collective, &mesh, &links, &query, &best), 0);
                cr_expect(mc_strategy_equal(&best.strategy, &ranking.list[0].strategy));
                for (uint32_t k = 0; k < ranking.n; k++) {
                    const mc_ranked_t *const one = &ranking.list[k];
                    const double seconds =
                        mc_strategy_seconds(&one->strategy, &mesh, &links, 1, bytes);
                    cr_expect_eq(mc_strategy_check(&one->strategy, &mesh), MESHCOLL_OK);
                    cr_expect_float_eq(one->seconds, seconds, 1e-9 * seconds);
                    cr_expect(seconds > 0.999 * bound, "%s %s, %g bytes: %g below %g", text[i],
                              meshcoll_collective_name(collective), bytes, seconds, bound);
                }
                free(ranking.list);
            }
}

/* An alltoall by fold 0: of n bytes a rank, 3/4 of 4 n come to the first of four and go from it again, in boxes
 * of 4, 3 and 1 the first sends 4 * 4 blocks of n/8 to others, in two messages. */
Test(ragged, an_alltoall_sends_what_its_largest_boxes_have)
{
    static const struct {
        int32_t dim;
        double alpha, beta;
    } phase[] = {{MC_RAGGED_FOLD, 3, 3},
                 {MC_RAGGED_GPU, 0, 0},
                 {MC_RAGGED_BOX, 2, 2},
                 {MC_RAGGED_FOLD, 2, 3}};
    mc_mesh_t mesh;
    mc_links_t links;
    mc_strategy_t strategy;
    cr_assert_eq(mc_mesh_parse("box=4+3+1", &mesh), 0);
    cr_assert_eq(mc_links_parse("lab", &mesh, &links), 0);
    cr_assert_eq(mc_strategy_parse("gather:star(fold) alltoall:pairwise(gpu) "
                                   "alltoall:pairwise(box) scatter:mst(fold)",
                                   MESHCOLL_ALLTOALL, &mesh, &strategy),
                 0);
    for (int32_t i = 0; i < strategy.n_phases; i++) {
        const mc_cost_t cost = mc_strategy_phase_cost(&strategy, &mesh, &links, 0, i).once;
        for (int32_t d = 0; d < mesh.ndims; d++) {
            const bool crossed = d == phase[i].dim;
            cr_expect_float_eq(mc_ratio_value(cost.dim[d].alpha), crossed ? phase[i].alpha : 0,
                               1e-12);
            cr_expect_float_eq(mc_ratio_value(cost.dim[d].beta), crossed ? phase[i].beta : 0, 1e-12,
                               "phase %d: %g", i, mc_ratio_value(cost.dim[d].beta));
        }
    }
}

static mc_cost_t cost_of_digits(const char *boxes)
{
    mc_mesh_t mesh;
    mc_links_t links;
    mc_strategy_t strategy;
    cr_assert_eq(mc_mesh_parse(boxes, &mesh), 0);
    cr_assert_eq(mc_links_parse("lab", &mesh, &links), 0);
    cr_assert_eq(
        mc_strategy_parse("alltoall:digits(box*gpu*fold)", MESHCOLL_ALLTOALL, &mesh, &strategy), 0);
    return mc_strategy_phase_cost(&strategy, &mesh, &links, 0, 0).once;
}

/* Digits of ranks in boxes of 4, 3 and 1 change boxes in all three rounds: ranks 0 to 3 with 4 to 7 (4 leave
 * the first box), 5 with 7, 6 with 7 (1 leaves the second), each time half of what they hold. */
Test(ragged, digits_do_not_follow_boxes)
{
    const mc_cost_t cost = cost_of_digits("box=4+3+1");
    cr_expect_float_eq(mc_ratio_value(cost.dim[MC_RAGGED_BOX].alpha), 3, 1e-12);
    cr_expect_float_eq(mc_ratio_value(cost.dim[MC_RAGGED_BOX].beta), 4 / 2. + 1 / 2. + 1 / 2.,
                       1e-12);
    cr_expect_eq(cost.dim[MC_RAGGED_BOX].messages, 8 + 2 + 2);
    cr_expect_eq(cost.dim[MC_RAGGED_FOLD].messages, 3 * 8 - 12);
}

/* Half a million boxes, and as many rounds of one digit: a walk over the boxes in each would take minutes. */
Test(ragged, many_boxes_and_a_large_radix, .timeout = 60)
{
    enum { BOXES = 500003, RANKS = 8 * BOXES + 7, RADIX = RANKS / 7 };
    const mc_cost_t cost = cost_of_digits("box=500003x8+7");
    const double inside = cost.dim[MC_RAGGED_FOLD].messages;
    cr_expect_float_eq(mc_ratio_value(cost.dim[MC_RAGGED_BOX].alpha), 6 + RADIX - 1, 1e-6);
    /* ranks of a box differ by 1 to 6 in the first digit, or by 1 in the second */
    cr_expect(inside > 0 && inside < 8. * RANKS, "%g", inside);
    cr_expect_eq(cost.dim[MC_RAGGED_BOX].messages + inside, (6. + RADIX - 1) * RANKS);
}

/* A scatter's root keeps what its own box has: 4 of 8 slices, or 1 where it is alone there. A broadcast's
 * slices are of one length. */
Test(ragged, blocks_of_the_roots_box_do_not_leave_it)
{
    static const struct {
        meshcoll_collective_t collective;
        const char *text;
        int32_t root;
        double beta;
    } by[] = {
        {MESHCOLL_SCATTER, "scatter:star(box) scatter:star(fold)", 0, 4 / 8.},
        {MESHCOLL_SCATTER, "scatter:star(box) scatter:star(fold)", 5, 5 / 8.},
        {MESHCOLL_SCATTER, "scatter:mst(box) scatter:star(fold)", 7, 7 / 8.},
        {MESHCOLL_GATHER, "gather:star(fold) gather:star(box)", 2, 4 / 8.},
        {MESHCOLL_GATHER, "gather:mst(fold) gather:mst(box)", 7, 7 / 8.},
        {MESHCOLL_GATHER, "gather:star(box*gpu*fold)", 5, 5 / 8.},
        {MESHCOLL_BCAST, "scatter:star(box) allgather:ring(box) bcast:star(fold)", 0, 4 / 3.}};
    mc_mesh_t mesh;
    mc_links_t links;
    cr_assert_eq(mc_mesh_parse("box=4+3+1", &mesh), 0);
    cr_assert_eq(mc_links_parse("lab", &mesh, &links), 0);
    for (size_t i = 0; i < MC_COUNT(by); i++) {
        mc_strategy_t strategy;
        double beta = 0;
        cr_assert_eq(mc_strategy_parse(by[i].text, by[i].collective, &mesh, &strategy), 0, "%s",
                     meshcoll_last_error());
        for (int32_t k = 0; k < strategy.n_phases; k++) {
            const mc_phase_cost_t cost =
                mc_strategy_phase_cost(&strategy, &mesh, &links, by[i].root, k);
            beta += mc_ratio_value(cost.once.dim[MC_RAGGED_BOX].beta);
        }
        cr_expect_float_eq(beta, by[i].beta, 1e-12, "%s, root %d: %g n between boxes", by[i].text,
                           by[i].root, beta);
    }
}
