/* Strategies priced: REFERENCE §3 to §5, and the planner against the whole enumeration. */
#include "compose/planner/planner.h"

#include "support/one_side.h"
#include "support/places.h"
#include "support/plans.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double KiB = 1024, MiB = 1024 * 1024;

/* Terms of all phases and dimensions added up: the textbook's formula on uniform links. */
static mc_term_t total_of(const place_t *at, meshcoll_collective_t collective, const char *text)
{
    mc_term_t sum = mc_cost_zero().dim[0];
    const mc_strategy_t strategy = strategy_of(at, collective, text);
    for (int32_t i = 0; i < strategy.n_phases; i++) {
        const mc_phase_cost_t cost = mc_strategy_phase_cost(&strategy, &at->mesh, &at->links, 0, i);
        for (int32_t d = 0; d < at->mesh.ndims; d++) {
            sum.alpha = mc_ratio_add(sum.alpha, cost.once.dim[d].alpha);
            sum.beta = mc_ratio_add(sum.beta, cost.once.dim[d].beta);
            sum.gamma = mc_ratio_add(sum.gamma, cost.once.dim[d].gamma);
        }
    }
    return sum;
}

static void expect_formula(const place_t *at, meshcoll_collective_t collective, const char *text,
                           int64_t alpha, mc_ratio_t beta)
{
    const mc_term_t sum = total_of(at, collective, text);
    cr_expect(mc_ratio_equal(sum.alpha, mc_ratio(alpha, 1)), "%s: alpha %ld, not %ld", text,
              (long)sum.alpha.num, (long)alpha);
    cr_expect(mc_ratio_equal(sum.beta, beta), "%s: beta %ld/%ld, not %ld/%ld", text,
              (long)sum.beta.num, (long)sum.beta.den, (long)beta.num, (long)beta.den);
}

static int32_t lg(int32_t p)
{
    int32_t n = 0;
    while (1 << n < p)
        n++;
    return n;
}

/* REFERENCE §3: the column is the outermost dimension, c ranks; rows have r. */
Test(planner, broadcast_options_cost_what_the_textbook_says)
{
    static const int32_t extent[] = {2, 3, 4, 5, 7, 8, 16, 31};
    for (size_t i = 0; i < MC_COUNT(extent); i++)
        for (size_t j = 0; j < MC_COUNT(extent); j++) {
            const int32_t c = extent[i], r = extent[j], p = r * c, logs = lg(c) + lg(r);
            char text[32];
            snprintf(text, sizeof text, "box=%d,gpu=%d", c, r);
            const place_t at = place_of(text, "uniform");
            expect_formula(&at, MESHCOLL_BCAST, "option1", logs, mc_ratio(logs, 1));
            expect_formula(&at, MESHCOLL_BCAST, "option2", logs + c - 1,
                           mc_ratio_add(mc_ratio(2 * (c - 1), c), mc_ratio(lg(r), c)));
            expect_formula(&at, MESHCOLL_BCAST, "option3", logs + r + c - 2,
                           mc_ratio(2 * (p - 1), p));
        }
}

/* The same construction in three dimensions. */
Test(planner, three_dimensions_cost_what_the_construction_says)
{
    const place_t at = place_of("x=3,y=4,z=5", "uniform");
    const int32_t logs = lg(3) + lg(4) + lg(5);
    expect_formula(&at, MESHCOLL_BCAST, "option2", logs + 2 + 3,
                   mc_ratio_add(mc_ratio(2 * 11, 12), mc_ratio(lg(5), 12)));
    expect_formula(&at, MESHCOLL_BCAST, "option3", logs + 2 + 3 + 4, mc_ratio(2 * 59, 60));
    expect_formula(&at, MESHCOLL_ALLREDUCE,
                   "reduce_scatter:ring(x) reduce_scatter:ring(y) reduce_scatter:ring(z) "
                   "allgather:ring(z) allgather:ring(y) allgather:ring(x)",
                   2 * (2 + 3 + 4), mc_ratio(2 * 59, 60));
}

/* 8 x 8: option 1 wins at 1 KiB and option 3 at 64 MiB, 2 lies between; each pair crosses where the
 * formulas do, for any alpha and beta. */
Test(planner, options_cross_where_the_formulas_say)
{
    static const char *const links[] = {"uniform", "uniform,box=alpha:20us;beta:1Gbit/s,"
                                                   "gpu=alpha:20us;beta:1Gbit/s"};
    for (size_t i = 0; i < MC_COUNT(links); i++) {
        const place_t at = place_of("box=8,gpu=8", links[i]);
        const double ratio = at.links.dim[0].alpha / at.links.dim[0].beta;
        /* option 1: 6a + 6nb; 2: 13a + (14+3)/8 nb; 3: 20a + 126/64 nb */
        const double from1to2 = 7 / (6 - 17.0 / 8) * ratio,
                     from1to3 = 14 / (6 - 126.0 / 64) * ratio;
        const double from2to3 = 7 / (17.0 / 8 - 126.0 / 64) * ratio;
        cr_expect_lt(from1to2, from1to3);
        cr_expect_lt(from1to3, from2to3);
        const double at12[] = {seconds_of(&at, MESHCOLL_BCAST, "option1", from1to2),
                               seconds_of(&at, MESHCOLL_BCAST, "option2", from1to2)};
        const double at13[] = {seconds_of(&at, MESHCOLL_BCAST, "option1", from1to3),
                               seconds_of(&at, MESHCOLL_BCAST, "option3", from1to3)};
        const double at23[] = {seconds_of(&at, MESHCOLL_BCAST, "option2", from2to3),
                               seconds_of(&at, MESHCOLL_BCAST, "option3", from2to3)};
        cr_expect_float_eq(at12[0] / at12[1], 1, 1e-12);
        cr_expect_float_eq(at13[0] / at13[1], 1, 1e-12);
        cr_expect_float_eq(at23[0] / at23[1], 1, 1e-12);
        cr_expect(from1to2 > KiB && from2to3 < 64 * MiB, "%g %g", from1to2, from2to3);
        cr_expect_lt(seconds_of(&at, MESHCOLL_BCAST, "option1", KiB),
                     seconds_of(&at, MESHCOLL_BCAST, "option2", KiB));
        cr_expect_lt(seconds_of(&at, MESHCOLL_BCAST, "option2", KiB),
                     seconds_of(&at, MESHCOLL_BCAST, "option3", KiB));
        cr_expect_gt(seconds_of(&at, MESHCOLL_BCAST, "option1", 64 * MiB),
                     seconds_of(&at, MESHCOLL_BCAST, "option2", 64 * MiB));
        cr_expect_gt(seconds_of(&at, MESHCOLL_BCAST, "option2", 64 * MiB),
                     seconds_of(&at, MESHCOLL_BCAST, "option3", 64 * MiB));
    }
}

/* REFERENCE §4. */
Test(planner, worked_numbers)
{
    const double gradients = 300e6 * 4;
    const place_t two = place_of("x=2", "x=alpha:0;beta:1GB/s");
    const place_t ten = place_of("x=10", "x=alpha:0;beta:1GB/s");
    const char *star = "reduce:star(x) bcast:star(x)";
    cr_expect_float_eq(seconds_of(&two, MESHCOLL_REDUCE, "reduce:star(x)", gradients), 1.2, 1e-9);
    cr_expect_float_eq(seconds_of(&ten, MESHCOLL_REDUCE, "reduce:star(x)", gradients), 10.8, 1e-9);
    cr_expect_float_eq(seconds_of(&ten, MESHCOLL_ALLREDUCE, star, gradients), 21.6, 1e-9);

    const place_t boxes = place_of("box=5,gpu=8", "box=alpha:0;beta:6GB/s,gpu=alpha:0;beta:6GB/s");
    const double ring = seconds_of(&boxes, MESHCOLL_ALLREDUCE, "flat-ring", gradients);
    cr_expect_float_eq(ring, 2 * 39 / 40.0 * 1.2 / 6, 1e-9);
    cr_expect_float_eq(ring, 0.4, 0.02);
    const mc_term_t forty = total_of(&boxes, MESHCOLL_ALLREDUCE, "flat-ring");
    cr_expect_float_eq(mc_ratio_value(forty.beta) * gradients, 2.4e9, 0.1e9);

    const place_t eight = place_of("x=8", "uniform");
    const mc_term_t steps = total_of(&eight, MESHCOLL_ALLREDUCE, "allreduce:ring(x)");
    const mc_term_t tree = total_of(&eight, MESHCOLL_ALLREDUCE, "allreduce:mst(x)");
    cr_expect(mc_ratio_equal(steps.alpha, mc_ratio(14, 1)));
    cr_expect(mc_ratio_equal(tree.alpha, mc_ratio(6, 1)));

    const place_t gpt3 = place_of("x=8", "x=alpha:0;beta:1GB/s");
    const double bytes = mc_lower_bound(MESHCOLL_ALLREDUCE, &gpt3.mesh, &gpt3.links, 350e9) * 1e9;
    cr_expect_float_eq(bytes, 2 * 7 / 8.0 * 350e9, 1);
    cr_expect_float_eq(seconds_of(&gpt3, MESHCOLL_ALLREDUCE, "allreduce:ring(x)", 350e9) * 1e9,
                       bytes, 1);
}

/* Eight GPUs behind one NIC: slices side by side fill it, whole vectors wait for each other. */
Test(planner, lines_of_a_box_share_its_ports)
{
    static const char pattern[] = "box=alpha:0;beta:1GB/s;ports:%s,gpu=alpha:0;beta:0";
    static const struct {
        const char *ports;
        double slices, whole, rooted;
    } row[] = {{"1", 0.75, 16, 2}, {"2", 0.375, 8, 2}, {"all", 0.75 / 8, 2, 2}};
    for (size_t i = 0; i < MC_COUNT(row); i++) {
        char text[128];
        snprintf(text, sizeof text, pattern, row[i].ports);
        const place_t at = place_of("box=4,gpu=8", text);
        const char *slices = "allgather:ring(box) allgather:ring(gpu)";
        const char *whole = "bcast:mst(gpu) bcast:mst(box)", *rooted = "option1";
        cr_expect_float_eq(seconds_of(&at, MESHCOLL_ALLGATHER, slices, 1e9), row[i].slices, 1e-9);
        cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, whole, 1e9), row[i].whole, 1e-9);
        cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, rooted, 1e9), row[i].rooted, 1e-9);
    }
}

/* Two racks of two boxes of four ranks: rack and box go through the box's one NIC. What was cut and was to take
 * 34 ms took 65 in the lab (docs/lab-notes/network.md), where the NIC carries 1 MiB in 41.9 ms. */
Test(planner, dimensions_that_share_a_nic_add_up)
{
    const place_t at = place_of("rack=2,box=2,gpu=4", "lab");
    const place_t apart = place_of("rack=2,box=2,gpu=4", "lab,rack=lab-net;wire:own");
    static const char *const chains =
        "bcast:chain(rack) bcast:chain(box) bcast:star(gpu) segments=64";
    static const char *const chain = "bcast:chain(rack*box) bcast:star(gpu) segments=64";
    static const char *const cut = "scatter:star(gpu) scatter:mst(rack) scatter:mst(box) "
                                   "allgather:ring(rack*box) allgather:doubling(gpu) segments=64";
    static const char *const sides = "allgather:ring(rack) allgather:ring(box) | "
                                     "allgather:ring(box) allgather:ring(rack) segments=2";
    const double nic = MiB * 40e-9;
    cr_expect_float_eq(seconds_of(&apart, MESHCOLL_BCAST, chains, MiB) / nic, 1, 0.05);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, chains, MiB) / nic, 2, 0.05);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, chain, MiB) / nic, 1, 0.05);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, cut, MiB) / nic, 1.5, 0.1);
    for (int c = 0; c < 2; c++) {
        const meshcoll_collective_t which = c ? MESHCOLL_REDUCE : MESHCOLL_BCAST;
        const mc_planner_query_t query = {.bytes = MiB, .max_segments = 256};
        mc_ranked_t best;
        cr_assert_eq(mc_planner_best(which, &at.mesh, &at.links, &query, &best), MESHCOLL_OK);
        cr_expect_float_eq(best.seconds / nic, 1, 0.06);
        cr_expect_float_eq(mc_lower_bound(which, &at.mesh, &at.links, MiB), nic, 1e-12);
    }
    /* three quarters of the vector come through each NIC, in whatever order */
    const place_t boxes = place_of("rack=2,box=2,gpu=1", "lab");
    cr_expect_float_eq(seconds_of(&boxes, MESHCOLL_ALLGATHER, sides, MiB) / nic, 0.75, 0.01);
    cr_expect_float_eq(mc_lower_bound(MESHCOLL_ALLGATHER, &boxes.mesh, &boxes.links, MiB) / nic,
                       0.75, 1e-9);
}

/* Fill, then the busiest link: phases over one link add up, over different ones overlap. */
Test(planner, pipelines_cost_fill_and_busiest_link)
{
    const place_t at = place_of("box=4,gpu=8", "box=alpha:1ms;beta:1MB/s,gpu=alpha:2ms;beta:2MB/s");
    const char *text = "scatter:mst(box) bcast:mst(gpu) allgather:ring(box) segments=10";
    const double n = 1e5, box = (2 + 3) * 1e-3 + 2 * 3 / 4.0 * n * 1e-6;
    const double gpu = 3 * (2e-3 + n / 4 * 0.5e-6), contended = 8 * 3 / 4.0 * n * 1e-6;
    /* the scatter is the root's line alone, the allgather runs on all 8 lines of a port */
    const double network = box - 3 / 4.0 * n * 1e-6 + contended;
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, text, 10 * n), network + gpu + 9 * network,
                       1e-9);
    const char *chain = "bcast:chain(box) bcast:chain(gpu) segments=10";
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, chain, 10 * n),
                       3 * 0.101 + 7 * 0.052 + 9 * 0.101, 1e-9);
}

typedef struct {
    const place_t *at;
    const mc_planner_query_t *query;
    mc_ranked_t best;
    uint32_t n;
} scan_t;

static bool keep_cheapest(void *context, const mc_strategy_t *strategy)
{
    scan_t *const scan = context;
    mc_ranked_t mine = {*strategy, INFINITY};
    for (uint32_t k = 1; k <= scan->query->max_segments; k *= 2) {
        mc_strategy_t cut = *strategy;
        cut.segments = k;
        const double seconds = mc_strategy_seconds(&cut, &scan->at->mesh, &scan->at->links,
                                                   scan->query->root, scan->query->bytes);
        if (seconds < mine.seconds)
            mine = (mc_ranked_t){cut, seconds};
    }
    if (scan->n++ == 0 || mine.seconds < scan->best.seconds)
        scan->best = mine;
    return true;
}

static void expect_best(const place_t *at, meshcoll_collective_t collective, double bytes,
                        int32_t root, uint32_t max_segments)
{
    char text[MC_STRATEGY_TEXT], other[MC_STRATEGY_TEXT];
    const mc_planner_query_t query = {.root = root, .bytes = bytes, .max_segments = max_segments};
    scan_t scan = {.at = at, .query = &query};
    cr_assert_eq(mc_strategy_each(collective, &at->mesh, MC_PATHS_ALL, keep_cheapest, &scan), 0);
    const mc_ranked_t best = best_one_side(at, collective, &query, 1);
    mc_text_t a = mc_text(text, sizeof text), b = mc_text(other, sizeof other);
    mc_strategy_print(&best.strategy, &at->mesh, &a);
    mc_strategy_print(&scan.best.strategy, &at->mesh, &b);
    cr_expect(mc_strategy_equal(&best.strategy, &scan.best.strategy),
              "%g B: %s %.17g, not %s %.17g", bytes, text, best.seconds, other, scan.best.seconds);
    cr_expect_eq(best.seconds, scan.best.seconds);
}

enum { ANY_MESH = 4 }; /* the first ones name no dimension */
static const char *const link_texts[] = {
    "lab",
    "generic",
    "dgx-h100",
    "uniform",
    "uniform,box=alpha:3us;ports:2,gpu=alpha:100ns;beta:7GB/s;gamma:3GB/s",
    "lab,box=gap:3us;cpu:2us,gpu=gap:0",
    "uniform,box=gap:300ns,gpu=gap:300ns;pulled:yes",
};

/* Short vectors pass in a burst, long ones but for its bytes take beta. */
Test(planner, a_burst_is_a_lower_beta_of_short_vectors)
{
    const place_t at = place_of("box=4,gpu=1", "box=alpha:1us;beta:1ns/B;burst:8KiB");
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, "bcast:star(box)", 8192), 3e-6 + 3 * 4096e-9,
                       1e-12);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, "bcast:mst(box)", 64), 2e-6, 2e-9);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, "bcast:mst(box)", 0x1p30),
                       2e-6 + 2 * (0x1p30 - 8192) * 1e-9, 1e-9);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, "bcast:mst(box)", 0), 2e-6, 1e-12);
}

/* Everything there is on one and two dimensions and a small third. */
Test(planner, best_is_the_cheapest_of_all)
{
    static const double bytes[] = {0, 8, 3000, 1e5, 4e6, 1e9};
    for (size_t l = 0; l < MC_COUNT(link_texts); l++) {
        const place_t at = place_of("box=3,gpu=4", link_texts[l]);
        for (int c = 0; c < MESHCOLL_ALLREDUCE; c++)
            for (size_t b = 0; b < MC_COUNT(bytes); b++)
                expect_best(&at, (meshcoll_collective_t)c, bytes[b], 5, 64);
    }
}

Test(planner, best_allreduce_is_the_cheapest_of_all)
{
    for (size_t l = 0; l < MC_COUNT(link_texts); l++) {
        const place_t at = place_of("box=3,gpu=4", link_texts[l]);
        expect_best(&at, MESHCOLL_ALLREDUCE, l % 2 ? 64 : 1e6, 0, 8);
    }
}

Test(planner, best_in_three_dimensions_is_the_cheapest_of_all)
{
    const place_t lab = place_of("rack=2,box=3,gpu=2", "lab");
    const place_t alike = place_of("x=2,y=2,z=3", "uniform");
    expect_best(&lab, MESHCOLL_BCAST, 1e6, 7, 16);
    expect_best(&lab, MESHCOLL_REDUCE, 1e4, 0, 4);
    expect_best(&alike, MESHCOLL_BCAST, 2e4, 3, 4);
    const place_t measured = place_of("x=3,y=3,z=3", "uniform,x=gap:300ns,y=gap:300ns,"
                                                     "z=gap:300ns");
    expect_best(&measured, MESHCOLL_ALLGATHER, 3e5, 0, 8);
    const place_t shared = place_of("x=2,y=2,z=3", "uniform,x=gap:300ns;wire:y,"
                                                   "y=gap:200ns;beta:1.1ns/B");
    expect_best(&shared, MESHCOLL_BCAST, 2e5, 5, 8);
    expect_best(&shared, MESHCOLL_REDUCE, 3e4, 0, 4);
    expect_best(&measured, MESHCOLL_REDUCE, 3e4, 13, 4);
}

/* Alike in all dimensions: whole families of strategies cost the same, and the first one is named. */
Test(planner, best_of_exact_ties_is_the_first)
{
    static const double bytes[] = {0, 3e4, 1e9};
    const place_t two = place_of("x=4,y=4", "uniform"), three = place_of("x=2,y=2,z=2", "tpu-v4");
    for (size_t b = 0; b < MC_COUNT(bytes); b++) {
        for (int c = 0; c < MESHCOLL_ALLREDUCE; c++)
            expect_best(&two, (meshcoll_collective_t)c, bytes[b], 5, 16);
        expect_best(&two, MESHCOLL_ALLREDUCE, bytes[b], 0, b == 1 ? 8 : 1);
        expect_best(&three, MESHCOLL_SCATTER, bytes[b], 3, 8);
        expect_best(&three, MESHCOLL_ALLGATHER, bytes[b], 0, 8);
    }
}

/* Two ways to list what the search finds: the labels of the start, and a walk along all paths. */
Test(planner, best_is_what_rank_has_first)
{
    static const char *const mesh[] = {"x=2,y=2,z=2", "x=3,y=4,z=5", "x=32,y=32,z=32"};
    static const double bytes[] = {8, 3e4, 1e6, 1e9};
    for (size_t m = 0; m < MC_COUNT(mesh); m++)
        for (size_t l = 0; l < ANY_MESH; l++) {
            const place_t at = place_of(mesh[m], link_texts[l]);
            for (int c = 0; c < MESHCOLL_COLLECTIVES; c++)
                for (size_t b = 0; b < MC_COUNT(bytes); b++) {
                    const meshcoll_collective_t which = (meshcoll_collective_t)c;
                    const mc_planner_query_t query = {
                        .root = 7, .bytes = bytes[b], .max_segments = 64, .most = 2};
                    mc_ranking_t ranking;
                    mc_ranked_t best;
                    cr_assert_eq(mc_planner_rank(which, &at.mesh, &at.links, &query, &ranking), 0);
                    cr_assert_eq(mc_planner_best(which, &at.mesh, &at.links, &query, &best), 0);
                    const mc_ranked_t *const first = &ranking.list[0];
                    cr_expect(mc_strategy_equal(&first->strategy, &best.strategy), "%s %s %s %g",
                              mesh[m], link_texts[l], meshcoll_collective_name(which), bytes[b]);
                    cr_expect_eq(first->seconds, best.seconds);
                    free(ranking.list);
                }
        }
}

/* A long search takes paths for one that cost nearly the same: the good one it began with must be among them. */
Test(planner, a_long_search_finds_something)
{
    static const char *const other[] = {"flat-ring", "hierarchical", "torus"};
    const place_t at =
        place_of("rack=32,box=32,gpu=32",
                 "rack=alpha:46.8us;gap:0;cpu:8.22us;beta:43.4ns/B;burst:12725B;gamma:309ps/B;"
                 "ports:1,"
                 "box=alpha:46.8us;gap:0;cpu:8.22us;beta:43.4ns/B;burst:12725B;gamma:309ps/B;"
                 "ports:1,"
                 "gpu=alpha:44.1us;gap:0;beta:30.5ps/B;gamma:10GB/s;pulled:yes");
    for (double n = 8; n < 1e10; n *= 1024) {
        const mc_planner_query_t query = {.bytes = n, .max_segments = 256};
        mc_ranked_t best;
        cr_assert_eq(mc_planner_best(MESHCOLL_ALLREDUCE, &at.mesh, &at.links, &query, &best), 0);
        cr_assert_eq(mc_strategy_check(&best.strategy, &at.mesh), MESHCOLL_OK, "%g", n);
        cr_expect_eq(best.seconds, mc_strategy_seconds(&best.strategy, &at.mesh, &at.links, 0, n));
        for (size_t i = 0; i < MC_COUNT(other); i++)
            cr_expect_leq(best.seconds, seconds_of(&at, MESHCOLL_ALLREDUCE, other[i], n));
    }
}

static void expect_ranked(const place_t *at, meshcoll_collective_t collective, uint32_t most)
{
    const mc_planner_query_t query = {.bytes = 1e5, .max_segments = 16, .most = most};
    mc_ranking_t ranking;
    mc_ranked_t best;
    cr_assert_eq(mc_planner_rank(collective, &at->mesh, &at->links, &query, &ranking), 0);
    const mc_ranked_t *const ranked = ranking.list;
    const uint32_t n = ranking.n;
    cr_assert_eq(mc_planner_best(collective, &at->mesh, &at->links, &query, &best), MESHCOLL_OK);
    cr_expect_gt(n, 0u);
    cr_expect_geq(ranking.considered, n);
    cr_expect(n <= most || most == 0);
    cr_expect(mc_strategy_equal(&ranked[0].strategy, &best.strategy));
    cr_expect_eq(ranked[0].seconds, best.seconds);
    for (uint32_t i = 0; i < n; i++) {
        cr_expect_eq(mc_strategy_check(&ranked[i].strategy, &at->mesh), MESHCOLL_OK);
        cr_expect_eq(ranked[i].seconds,
                     mc_strategy_seconds(&ranked[i].strategy, &at->mesh, &at->links, 0, 1e5));
        cr_assert(i == 0 || ranked[i - 1].seconds <= ranked[i].seconds);
        cr_assert(i == 0 || !mc_strategy_equal(&ranked[i - 1].strategy, &ranked[i].strategy));
    }
    free(ranking.list);
}

Test(planner, rank_is_sorted_and_starts_with_the_best)
{
    static const char *const mesh[] = {"x=5",         "box=2,gpu=3", "box=1,gpu=1",    "gpu=1",
                                       "a=2,b=3,c=2", "box=4,gpu=1", "a=2,b=2,c=3,d=2"};
    for (size_t m = 0; m < MC_COUNT(mesh); m++) {
        const place_t at = place_of(mesh[m], "lab");
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
            expect_ranked(&at, (meshcoll_collective_t)c, 10);
            if (m < 5 && c != MESHCOLL_ALLREDUCE)
                expect_ranked(&at, (meshcoll_collective_t)c, 0);
        }
    }
}

/* The search finds the same first ones as the sorted whole. */
static bool take(void *context, const mc_strategy_t *strategy)
{
    mc_ranked_t **const next = context;
    (*next)->strategy = *strategy;
    (*next)++;
    return true;
}

static int by_seconds(const void *left, const void *right)
{
    const mc_ranked_t *const a = left, *const b = right;
    return a->seconds < b->seconds ? -1 : a->seconds > b->seconds;
}

static bool count_one(void *context, const mc_strategy_t *strategy)
{
    (void)strategy;
    ++*(size_t *)context;
    return true;
}

Test(planner, first_ones_in_three_dimensions_are_exact)
{
    enum { MOST = 100 };
    size_t all_n = 0;
    const place_t at = place_of("a=2,b=3,c=2", "lab");
    const mc_planner_query_t query = {.root = 4, .bytes = 3e5, .max_segments = 1, .most = MOST};
    mc_strategy_each(MESHCOLL_BCAST, &at.mesh, MC_PATHS_ALL, count_one, &all_n);
    mc_ranked_t *const all = calloc(all_n, sizeof *all), *next = all;
    mc_ranking_t ranking;
    cr_assert_gt(all_n, 15661u); /* so many with two algorithms for each allgather */
    cr_assert_not_null(all);
    mc_strategy_each(MESHCOLL_BCAST, &at.mesh, MC_PATHS_ALL, take, &next);
    for (size_t i = 0; i < all_n; i++)
        all[i].seconds = mc_strategy_seconds(&all[i].strategy, &at.mesh, &at.links, 4, 3e5);
    qsort(all, all_n, sizeof *all, by_seconds);
    cr_assert_eq(mc_planner_rank(MESHCOLL_BCAST, &at.mesh, &at.links, &query, &ranking),
                 MESHCOLL_OK);
    cr_assert_eq(ranking.n, MOST);
    cr_expect(ranking.exhaustive);
    for (uint32_t i = 0; i < MOST; i++)
        cr_expect_eq(ranking.list[i].seconds, all[i].seconds, "%u", i);
    free(ranking.list);
    free(all);
}

/* Tens of millions of strategies cost nothing: the first ones are enough. */
Test(planner, several_on_links_of_zeros_are_the_first, .timeout = 20)
{
    enum { WANTED = 5 };
    const place_t at =
        place_of("x=4,y=3,z=2", "x=alpha:0;beta:0,y=alpha:0;beta:0,z=alpha:0;beta:0");
    const mc_planner_query_t query = {.bytes = MiB, .max_segments = 256, .most = WANTED};
    mc_ranking_t ranking;
    cr_assert_eq(mc_planner_rank(MESHCOLL_ALLREDUCE, &at.mesh, &at.links, &query, &ranking), 0);
    cr_assert_eq(ranking.n, WANTED);
    for (uint32_t i = 0; i < ranking.n; i++)
        cr_expect(ranking.list[i].seconds == 0 &&
                  (i == 0 ||
                   !mc_strategy_equal(&ranking.list[i - 1].strategy, &ranking.list[i].strategy)));
    free(ranking.list);
}

Test(planner, refuses_what_it_cannot_price)
{
    const place_t at = place_of("box=2,gpu=3", "lab");
    mc_planner_query_t query = {.root = 6, .bytes = 10, .max_segments = 1};
    mc_ranked_t best = {.seconds = -1};
    cr_expect_eq(mc_planner_best(MESHCOLL_BCAST, &at.mesh, &at.links, &query, &best),
                 MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(mc_planner_best(MESHCOLL_ALLREDUCE, &at.mesh, &at.links, &query, &best),
                 MESHCOLL_ERR_INVALID_ARG);
    query = (mc_planner_query_t){.bytes = NAN, .max_segments = 1};
    best.seconds = -1;
    cr_expect_eq(mc_planner_best(MESHCOLL_BCAST, &at.mesh, &at.links, &query, &best),
                 MESHCOLL_ERR_INVALID_ARG);
    cr_expect_eq(best.seconds, -1.0);
    const mc_links_t other = place_of("x=2", "lab").links;
    query.bytes = 1;
    cr_expect_lt(mc_planner_best(MESHCOLL_BCAST, &at.mesh, &other, &query, &best), 0);
}

/* REFERENCE §5: one line, then boxes. */
Test(planner, lower_bounds)
{
    const place_t line = place_of("x=5", "x=alpha:1ms;beta:1KB/s;gamma:2KB/s");
    const place_t boxes = place_of("box=4,gpu=8", "lab");
    const place_t rails = place_of("box=4,gpu=8", "box=alpha:1us;beta:1GB/s;ports:4,gpu=shm");
    static const double line_part[] = {1, 1, 0.8, 0.8, 0.8, 0.8, 1.6, 0.8};
    static const double box_part[] = {1, 1, 0.75, 0.75, 0.75, 0.75, 1.5, 8 * 0.75};
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const meshcoll_collective_t collective = (meshcoll_collective_t)c;
        cr_expect_float_eq(mc_lower_bound(collective, &line.mesh, &line.links, 1e6),
                           line_part[c] * 1e3, 1e-9);
        cr_expect_float_eq(mc_lower_bound(collective, &boxes.mesh, &boxes.links, 1e6),
                           box_part[c] * 0.04, 1e-12);
        cr_expect_float_eq(mc_lower_bound(collective, &rails.mesh, &rails.links, 1e9),
                           box_part[c] / 4, 1e-12);
        cr_expect_float_eq(mc_lower_bound(collective, &line.mesh, &line.links, 0), 3e-3, 1e-12);
    }
    /* two wires a rank: half of the time of what it receives or sends over one */
    const place_t torus = place_of("x=4,y=4", "x=uniform;wire:own,y=uniform;wire:own");
    static const double torus_part[] = {1, 1, 0.9375, 0.9375, 0.9375, 0.9375, 1.875};
    for (int c = 0; c < (int)MC_COUNT(torus_part); c++)
        cr_expect_float_eq(mc_lower_bound((meshcoll_collective_t)c, &torus.mesh, &torus.links, 1e9),
                           torus_part[c] / 2, 1e-12, "%s",
                           meshcoll_collective_name((meshcoll_collective_t)c));
    const place_t sums = place_of("x=4", "x=alpha:0;beta:1GB/s;gamma:1KB/s");
    cr_expect_float_eq(mc_lower_bound(MESHCOLL_REDUCE, &sums.mesh, &sums.links, 1e3), 0.75, 1e-9);
    cr_expect_lt(mc_lower_bound(MESHCOLL_BCAST, &sums.mesh, &sums.links, 1e3), 0.75);
    const place_t one = place_of("box=1,gpu=1", "lab");
    cr_expect_eq(mc_lower_bound(MESHCOLL_BCAST, &one.mesh, &one.links, 1e6), 0.0);
}

Test(planner, nothing_goes_below_the_bound_and_the_lab_comes_near)
{
    static const char *const mesh[] = {"box=7", "box=4,gpu=4", "box=5,gpu=3", "box=2,gpu=2,core=3"};
    for (size_t m = 0; m < MC_COUNT(mesh); m++)
        for (size_t l = 0; l < MC_COUNT(link_texts); l++)
            for (double n = 1; n < 1e10; n *= 100)
                for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
                    if (l >= ANY_MESH && (m == 0 || m == 3))
                        continue; /* has no gpu */
                    const place_t at = place_of(mesh[m], link_texts[l]);
                    const mc_planner_query_t query = {.bytes = n, .max_segments = 256};
                    const meshcoll_collective_t which = (meshcoll_collective_t)c;
                    const double bound = mc_lower_bound(which, &at.mesh, &at.links, n);
                    mc_ranked_t best;
                    cr_assert_eq(mc_planner_best(which, &at.mesh, &at.links, &query, &best), 0);
                    cr_expect_geq(best.seconds, bound * (1 - 1e-12), "%s %s %s %g", mesh[m],
                                  link_texts[l], meshcoll_collective_name(which), n);
                    if (m < 3 && l == 0 && n > 1e7)
                        cr_expect_leq(best.seconds, bound * 1.1, "%s %s %g: %g, bound %g", mesh[m],
                                      meshcoll_collective_name(which), n, best.seconds, bound);
                }
}
