/*
 * Presets of links between GPUs beside published times, and what a call takes besides its messages.
 */
#include "compose/price/bound.h"
#include "compose/price/strategy_cost.h"
#include "support/places.h"

static const char two_shots[] = "reduce_scatter:fullmesh(gpu) allgather:fullmesh(gpu)";

/* Allreduce on 8 H100 in two shots, as vLLM measured it (vLLM 24111, 42324; docs/links.md). */
Test(gpu_presets, nvlink4_is_near_published_times)
{
    static const struct {
        double bytes, seconds;
    } published[] = {
        {512 * 0x1p10, 15e-6}, {4 * 0x1p20, 37e-6}, {64 * 0x1p20, 468e-6}, {128 * 0x1p20, 923e-6}};
    const place_t at = place_of("gpu=8", "gpu=nvlink4");
    for (size_t i = 0; i < MC_COUNT(published); i++) {
        const double ratio = seconds_of(&at, MESHCOLL_ALLREDUCE, two_shots, published[i].bytes) /
                             published[i].seconds;
        cr_expect(ratio >= 0.8 && ratio <= 1.25, "%g bytes: %g of the published time",
                  published[i].bytes, ratio);
    }
}

/* Why the preset has a gap: with alpha for each of 14 messages no beta fits. */
Test(gpu_presets, nvlink4_needs_its_gap)
{
    const place_t at = place_of("gpu=8", "gpu=nvlink4;gap:1.9us;beta:1000TB/s");
    cr_expect_gt(seconds_of(&at, MESHCOLL_ALLREDUCE, two_shots, 512 * 0x1p10), 1.25 * 15e-6);
}

/* Of all dimensions the largest counts, once, in strategies of one side and of two, and in the bound. */
Test(gpu_presets, a_call_is_counted_once)
{
    static const char *const strategies[] = {
        "allreduce:fullmesh(box*gpu)",
        "reduce_scatter:ring(gpu) allreduce:mst(box) allgather:ring(gpu) segments=4",
        "reduce_scatter:ring(gpu) reduce_scatter:ring(box) allgather:ring(box) allgather:ring(gpu) "
        "| "
        "reduce_scatter:ring(box) reduce_scatter:ring(gpu) allgather:ring(gpu) allgather:ring(box) "
        "segments=4"};
    const place_t without = place_of("box=4,gpu=4", "uniform"),
                  with = place_of("box=4,gpu=4", "uniform,box=call:3us,gpu=call:7us");
    for (size_t i = 0; i < MC_COUNT(strategies); i++)
        cr_expect_float_eq(seconds_of(&with, MESHCOLL_ALLREDUCE, strategies[i], 1e6),
                           seconds_of(&without, MESHCOLL_ALLREDUCE, strategies[i], 1e6) + 7e-6,
                           1e-12);
    cr_expect_float_eq(
        mc_lower_bound(MESHCOLL_ALLREDUCE, &with.mesh, &with.links, 1e6),
        mc_lower_bound(MESHCOLL_ALLREDUCE, &without.mesh, &without.links, 1e6) + 7e-6, 1e-12);
}

/* The planner takes the same strategies, in the same order, and each at its price. */
Test(gpu_presets, a_call_changes_no_choice)
{
    const place_t without = place_of("box=2,gpu=4", "uniform,gpu=beta:5GB/s"),
                  with = place_of("box=2,gpu=4", "uniform,gpu=beta:5GB/s;call:7us");
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
        for (double bytes = 8; bytes < 1e9; bytes *= 32) {
            const mc_planner_query_t query = {.bytes = bytes, .max_segments = 64};
            mc_ranked_t a, b;
            cr_assert_eq(mc_planner_best((meshcoll_collective_t)c, &without.mesh, &without.links,
                                         &query, &a),
                         0);
            cr_assert_eq(
                mc_planner_best((meshcoll_collective_t)c, &with.mesh, &with.links, &query, &b), 0);
            cr_expect(mc_strategy_equal(&a.strategy, &b.strategy));
            cr_expect_float_eq(b.seconds, a.seconds + 7e-6, 1e-11 * b.seconds);
            cr_expect_eq(b.seconds,
                         mc_strategy_seconds(&b.strategy, &with.mesh, &with.links, 0, bytes));
        }
}
