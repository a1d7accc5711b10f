/* Costs of the 1D algorithms against REFERENCE §2, coefficient by coefficient. */
#include "support/costs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static mc_ratio_t r(int64_t num, int64_t den)
{
    return mc_ratio(num, den);
}

static int32_t lg(int32_t p)
{
    int32_t n = 0;
    while (1 << n < p)
        n++;
    return n;
}

/* Lines along all dimensions of a mesh, whole vector, a port for every rank. */
static mc_line_shape_t shape_of(mc_mesh_t *mesh, const char *text, int32_t root)
{
    cr_assert_eq(mc_mesh_parse(text, mesh), MESHCOLL_OK);
    mc_line_shape_t shape = {.mesh = mesh, .share = {1, 1}};
    shape.line = mc_mesh_line(mesh, (mc_dims_t){0, mesh->ndims}, root, root);
    for (int32_t d = 0; d < MC_MAX_DIMS; d++) {
        shape.sharers[d] = 1;
        shape.ports[d] = MC_PORTS_ALL;
    }
    return shape;
}

static void expect_term(const mc_term_t *term, mc_ratio_t alpha, mc_ratio_t beta, mc_ratio_t gamma,
                        const char *what)
{
    cr_expect(mc_ratio_equal(term->alpha, alpha), "%s: alpha %ld/%ld, not %ld/%ld", what,
              (long)term->alpha.num, (long)term->alpha.den, (long)alpha.num, (long)alpha.den);
    cr_expect(mc_ratio_equal(term->beta, beta), "%s: beta %ld/%ld, not %ld/%ld", what,
              (long)term->beta.num, (long)term->beta.den, (long)beta.num, (long)beta.den);
    cr_expect(mc_ratio_equal(term->gamma, gamma), "%s: gamma %ld/%ld, not %ld/%ld", what,
              (long)term->gamma.num, (long)term->gamma.den, (long)gamma.num, (long)gamma.den);
}

typedef struct {
    meshcoll_collective_t collective;
    const char *name;
    mc_ratio_t alpha, beta, gamma;
} row_t;

static mc_term_t total(const mc_cost_t *cost)
{
    mc_term_t sum = mc_cost_zero().dim[0];
    for (int32_t d = 0; d < MC_MAX_DIMS; d++) {
        sum.alpha = mc_ratio_add(sum.alpha, cost->dim[d].alpha);
        sum.beta = mc_ratio_add(sum.beta, cost->dim[d].beta);
        sum.gamma = mc_ratio_add(sum.gamma, cost->dim[d].gamma);
    }
    return sum;
}

static mc_ratio_t times(mc_ratio_t a, int64_t by)
{
    return mc_ratio_mul(a, mc_ratio(by, 1));
}

/* Thakur et al. 2005 and Bruck et al. 1997: on powers of two log p rounds; else a pair's surplus rank
 * gives before and gets after, and its neighbour stands for two slices in each round. */
static void each_doubling_row(int32_t p, void (*see)(const row_t *row, const void *context),
                              const void *context)
{
    const mc_ratio_t none = r(0, 1), one = r(1, 1), slice = r(1, p);
    int32_t power = 1, rounds = 0, slices = 0;
    for (; 2 * power <= p; power *= 2, rounds++)
        slices += power < p - (1 << lg(p)) / 2 ? 2 * power : power + p - (1 << lg(p)) / 2;
    /* index by index, a message for each run of equal length */
    int32_t bits = 0, carried = 0;
    for (int32_t bit = 1; bit < p; bit *= 2) {
        int32_t runs[2] = {0, 0}, run = 0;
        for (int32_t i = 0; i <= p; i++) {
            carried += i < p && (i & bit);
            run += i < p && (i & bit);
            if (run > 0 && (i == p || !(i & bit))) {
                runs[run == bit]++;
                run = 0;
            }
        }
        bits += (runs[0] > 0) + (runs[1] > 0);
    }
    const bool even = power == p;
    const mc_ratio_t all = r(rounds, 1), steps = even ? all : r(rounds + 2, 1);
    const mc_ratio_t halves = even ? r(p - 1, p) : r(slices, p);
    const mc_ratio_t before = even ? halves : mc_ratio_add(halves, one);
    const row_t rows[] = {
        {MESHCOLL_ALLREDUCE, "doubling", steps, even ? all : r(rounds + 2, 1),
         even ? all : r(rounds + 1, 1)},
        {MESHCOLL_REDUCE_SCATTER, "halving", steps, even ? halves : mc_ratio_add(before, slice),
         before},
        {MESHCOLL_ALLGATHER, "doubling", steps, even ? halves : mc_ratio_add(before, slice), none},
        {MESHCOLL_ALLTOALL, "bruck", r(bits, 1), r(carried, p), none},
        {MESHCOLL_ALLGATHER, "bruck", r(lg(p), 1), r(p - 1, p), none},
    };
    for (size_t i = 0; i < MC_COUNT(rows); i++)
        see(&rows[i], context);
    /* in the other order the same rounds; where they do not wrap round the line's end, the same messages */
    const row_t turned[] = {{MESHCOLL_REDUCE_SCATTER, "halving-near", steps, halves, halves},
                            {MESHCOLL_ALLGATHER, "doubling-far", steps, halves, none},
                            {MESHCOLL_ALLGATHER, "bruck-far", steps, halves, none},
                            {MESHCOLL_REDUCE_SCATTER, "bruck-near", steps, halves, halves}};
    for (size_t i = 0; i < MC_COUNT(turned) && even; i++)
        see(&turned[i], context);
}

/* REFERENCE §2 for p ranks; calls `see` with each row. */
static void each_row(int32_t p, void (*see)(const row_t *row, const void *context),
                     const void *context)
{
    const mc_ratio_t none = r(0, 1), logs = r(lg(p), 1), hops = r(p - 1, 1), part = r(p - 1, p);
    mc_ratio_t rounds = none, moved = none; /* by the prime factors of p */
    for (int32_t f = 2, left = p; left > 1; f++)
        for (; left % f == 0; left /= f) {
            rounds = mc_ratio_add(rounds, r(f - 1, 1));
            moved = mc_ratio_add(moved, r(f - 1, f));
        }
    const row_t rows[] = {
        {MESHCOLL_BCAST, "mst", logs, logs, none},
        {MESHCOLL_REDUCE, "mst", logs, logs, logs},
        {MESHCOLL_SCATTER, "mst", logs, part, none},
        {MESHCOLL_ALLGATHER, "ring", hops, part, none},
        {MESHCOLL_REDUCE_SCATTER, "ring", hops, part, part},
        {MESHCOLL_BCAST, "long", r(lg(p) + p - 1, 1), times(part, 2), none},
        {MESHCOLL_REDUCE, "long", r(lg(p) + p - 1, 1), times(part, 2), part},
        {MESHCOLL_ALLREDUCE, "ring", times(hops, 2), times(part, 2), part},
        {MESHCOLL_ALLREDUCE, "mst", times(logs, 2), times(logs, 2), logs},
        {MESHCOLL_BCAST, "chain", hops, hops, none},
        {MESHCOLL_REDUCE, "chain", hops, hops, hops},
        {MESHCOLL_BCAST, "star", hops, hops, none},
        {MESHCOLL_REDUCE, "star", hops, hops, hops},
        {MESHCOLL_SCATTER, "star", hops, part, none},
        {MESHCOLL_GATHER, "star", hops, part, none},
        {MESHCOLL_ALLGATHER, "fullmesh", hops, part, none},
        {MESHCOLL_REDUCE_SCATTER, "fullmesh", hops, part, part},
        {MESHCOLL_ALLTOALL, "digits", rounds, moved, none},
        {MESHCOLL_ALLTOALL, "pairwise", hops, part, none},
        {MESHCOLL_ALLREDUCE, "fullmesh", hops, hops, hops},
    };
    for (size_t i = 0; i < MC_COUNT(rows); i++)
        see(&rows[i], context);
    each_doubling_row(p, see, context);
}

static void see_plain(const row_t *row, const void *context)
{
    mc_line_shape_t shape = *(const mc_line_shape_t *)context;
    char what[64];
    snprintf(what, sizeof what, "%s:%s, p=%d root=%d", mc_moves[row->collective].name, row->name,
             shape.line.len, shape.line.root);
    const mc_phase_cost_t cost = cost_of(row->collective, row->name, &shape);
    expect_term(&cost.once.dim[0], row->alpha, row->beta, row->gamma, what);
    shape.share = mc_ratio(1, 7);
    const mc_phase_cost_t less = cost_of(row->collective, row->name, &shape);
    expect_term(&less.once.dim[0], row->alpha, mc_ratio_mul(row->beta, shape.share),
                mc_ratio_mul(row->gamma, shape.share), what);
}

Test(cost, plain_lines_cost_what_the_textbook_says)
{
    for (int32_t p = 1; p <= 33; p++)
        for (int32_t root = 0; root < p; root += 1 + p / 3) {
            mc_mesh_t mesh;
            char text[32];
            snprintf(text, sizeof text, "x=%d", p);
            const mc_line_shape_t shape = shape_of(&mesh, text, root);
            each_row(p, see_plain, &shape);
        }
}

static void see_merged(const row_t *row, const void *context)
{
    const mc_line_shape_t *const shape = context;
    char what[64];
    snprintf(what, sizeof what, "%s:%s, merged p=%d root=%d", mc_moves[row->collective].name,
             row->name, shape->line.len, shape->line.root);
    const mc_phase_cost_t cost = cost_of(row->collective, row->name, shape);
    const mc_term_t sum = total(&cost.once);
    expect_term(&sum, row->alpha, row->beta, row->gamma, what);
}

Test(cost, merged_lines_cost_the_same_in_all)
{
    static const char *const text[] = {"a=2,b=3",     "a=3,b=3",     "a=5,b=3", "a=4,b=8",
                                       "a=3,b=1,c=4", "a=2,b=3,c=4", "a=1,b=6", "a=7,b=1"};
    for (size_t i = 0; i < MC_COUNT(text); i++) {
        mc_mesh_t mesh;
        const int32_t p = shape_of(&mesh, text[i], 0).line.len;
        for (int32_t root = 0; root < p; root++) {
            const mc_line_shape_t shape = shape_of(&mesh, text[i], root);
            each_row(p, see_merged, &shape);
        }
    }
}

/* The chain with k segments: once(n/k) + (k-1) busy(n/k) = (p-2+k)(alpha + n/k beta). */
Test(cost, chain_pipelines)
{
    for (int32_t p = 2; p <= 33; p++)
        for (int32_t k = 1; k <= 16; k++) {
            mc_mesh_t mesh;
            char text[32];
            snprintf(text, sizeof text, "x=%d", p);
            const mc_line_shape_t shape = shape_of(&mesh, text, p / 2);
            const mc_phase_cost_t cost = cost_of(MESHCOLL_BCAST, "chain", &shape);
            const mc_term_t once = cost.once.dim[0], busy = cost.busy.dim[0];
            const mc_ratio_t alpha = mc_ratio_add(once.alpha, times(busy.alpha, k - 1));
            const mc_ratio_t beta = mc_ratio_add(once.beta, times(busy.beta, k - 1));
            cr_expect(mc_ratio_equal(alpha, r(p - 2 + k, 1)));
            cr_expect(mc_ratio_equal(mc_ratio_mul(beta, r(1, k)), r(p - 2 + k, k)));
            const mc_links_t links = {
                .ndims = 1, .dim = {{.alpha = 3e-6, .beta = 2e-9, .ports = 1, .gap = 3e-6}}};
            const double seconds = mc_phase_cost_seconds(&cost, &links, (uint32_t)k, 1e6);
            cr_expect_float_eq(seconds, (p - 2 + k) * (3e-6 + 1e6 / k * 2e-9), 1e-12);
        }
}

Test(cost, busiest_rank_of_the_others_is_busy_all_the_time)
{
    for (int32_t i = 0; i < mc_n_algorithms; i++) {
        mc_mesh_t mesh;
        const mc_line_shape_t shape = shape_of(&mesh, "x=6", 2);
        const mc_phase_cost_t cost = mc_algorithm_cost(i, &shape);
        if (mc_algorithms[i].fan == MC_FAN_CHAIN)
            continue;
        const mc_term_t *const once = &cost.once.dim[0];
        expect_term(&cost.busy.dim[0], once->alpha, once->beta, once->gamma, mc_algorithms[i].name);
    }
}

/* Where receivers copy, all do so at once; the root that reduces or gathers copies alone. */
Test(cost, stars_on_pulled_links)
{
    mc_mesh_t mesh;
    mc_line_shape_t shape = shape_of(&mesh, "x=8", 3);
    shape.pulled[0] = true;
    const mc_phase_cost_t bcast = cost_of(MESHCOLL_BCAST, "star", &shape),
                          reduce = cost_of(MESHCOLL_REDUCE, "star", &shape);
    const mc_phase_cost_t scatter = cost_of(MESHCOLL_SCATTER, "star", &shape);
    const mc_phase_cost_t gather = cost_of(MESHCOLL_GATHER, "star", &shape);
    expect_term(&bcast.once.dim[0], r(1, 1), r(1, 1), r(0, 1), "bcast");
    expect_term(&reduce.once.dim[0], r(7, 1), r(7, 1), r(7, 1), "reduce");
    expect_term(&scatter.once.dim[0], r(1, 1), r(1, 8), r(0, 1), "scatter");
    expect_term(&gather.once.dim[0], r(7, 1), r(7, 8), r(0, 1), "gather");
}

/* The first rank of the line reads when all others have read what it sums onto. */
Test(cost, full_mesh_allreduce_on_a_pulled_link)
{
    mc_mesh_t mesh;
    mc_line_shape_t shape = shape_of(&mesh, "x=4", 0);
    shape.pulled[0] = true;
    const mc_phase_cost_t full = cost_of(MESHCOLL_ALLREDUCE, "fullmesh", &shape);
    expect_term(&full.once.dim[0], r(3, 1), r(6, 1), r(3, 1), "full-mesh allreduce");
}

Test(cost, lines_that_share_ports_wait_for_each_other)
{
    mc_mesh_t mesh;
    mc_line_shape_t shape = shape_of(&mesh, "x=4", 0);
    shape.sharers[0] = 8;
    shape.ports[0] = 3;
    const mc_phase_cost_t bcast = cost_of(MESHCOLL_BCAST, "mst", &shape);
    const mc_phase_cost_t ring = cost_of(MESHCOLL_REDUCE_SCATTER, "ring", &shape);
    expect_term(&bcast.once.dim[0], r(2, 1), r(16, 3), r(0, 1), "mst bcast");
    expect_term(&ring.once.dim[0], r(3, 1), r(2, 1), r(3, 4), "ring reduce-scatter");
    shape.ports[0] = 8;
    const mc_phase_cost_t enough = cost_of(MESHCOLL_BCAST, "mst", &shape);
    expect_term(&enough.once.dim[0], r(2, 1), r(2, 1), r(0, 1), "enough ports");
}

/* 4 x 8: two rounds between boxes, three inside. 3 x 3 from rank 4: halves 0-4 and 5-8 cut through
 * boxes, so three rounds cross and one does not. */
Test(cost, merged_mst_is_charged_round_by_round)
{
    mc_mesh_t mesh;
    const mc_ratio_t none = r(0, 1);
    const mc_line_shape_t even = shape_of(&mesh, "box=4,gpu=8", 0);
    const mc_phase_cost_t bcast = cost_of(MESHCOLL_BCAST, "mst", &even),
                          scatter = cost_of(MESHCOLL_SCATTER, "mst", &even);
    expect_term(&bcast.once.dim[0], r(2, 1), r(2, 1), none, "4 x 8, box");
    expect_term(&bcast.once.dim[1], r(3, 1), r(3, 1), none, "4 x 8, gpu");
    expect_term(&scatter.once.dim[0], r(2, 1), r(3, 4), none, "4 x 8 scatter, box");
    expect_term(&scatter.once.dim[1], r(3, 1), r(7, 32), none, "4 x 8 scatter, gpu");
    const mc_line_shape_t odd = shape_of(&mesh, "box=3,gpu=3", 4);
    const mc_phase_cost_t reduce = cost_of(MESHCOLL_REDUCE, "mst", &odd);
    expect_term(&reduce.once.dim[0], r(3, 1), r(3, 1), r(3, 1), "3 x 3, box");
    expect_term(&reduce.once.dim[1], r(1, 1), r(1, 1), r(1, 1), "3 x 3, gpu");
}

/* One message of the ring leaves each box at a time; of the full mesh up to the ranks of a box. */
Test(cost, merged_rounds_count_crossings)
{
    mc_mesh_t mesh;
    mc_line_shape_t shape = shape_of(&mesh, "box=2,gpu=4", 0);
    shape.ports[0] = 1;
    const mc_phase_cost_t ring = cost_of(MESHCOLL_ALLGATHER, "ring", &shape);
    const mc_phase_cost_t full = cost_of(MESHCOLL_ALLGATHER, "fullmesh", &shape);
    expect_term(&ring.once.dim[0], r(7, 1), r(7, 8), r(0, 1), "ring");
    expect_term(&full.once.dim[0], r(7, 1), r(1 + 2 + 3 + 4 + 3 + 2 + 1, 8), r(0, 1), "full mesh");
    shape.ports[0] = 2;
    const mc_phase_cost_t two = cost_of(MESHCOLL_ALLGATHER, "fullmesh", &shape);
    expect_term(&two.once.dim[0], r(7, 1), r(2 + 2 + 3 + 4 + 3 + 2 + 2, 16), r(0, 1), "two ports");
    expect_term(&two.once.dim[1], r(0, 1), r(0, 1), r(0, 1), "inside");
}

Test(cost, merged_chains_and_stars_are_charged_hop_by_hop)
{
    mc_mesh_t mesh;
    const mc_ratio_t none = r(0, 1);
    const mc_line_shape_t inner = shape_of(&mesh, "box=3,gpu=4", 5);
    const mc_phase_cost_t chain = cost_of(MESHCOLL_BCAST, "chain", &inner),
                          star = cost_of(MESHCOLL_BCAST, "star", &inner);
    expect_term(&chain.once.dim[0], r(3, 1), r(3, 1), none, "chain from the middle, box");
    expect_term(&chain.once.dim[1], r(8, 1), r(8, 1), none, "chain from the middle, gpu");
    expect_term(&chain.busy.dim[0], r(1, 1), r(1, 1), none, "chain busy, box");
    expect_term(&chain.busy.dim[1], r(1, 1), r(1, 1), none, "chain busy, gpu");
    expect_term(&star.once.dim[0], r(8, 1), r(8, 1), none, "star, box");
    expect_term(&star.once.dim[1], r(3, 1), r(3, 1), none, "star, gpu");
    const mc_line_shape_t edge = shape_of(&mesh, "box=3,gpu=4", 4);
    const mc_phase_cost_t down = cost_of(MESHCOLL_BCAST, "chain", &edge),
                          up = cost_of(MESHCOLL_REDUCE, "chain", &edge);
    expect_term(&down.once.dim[0], r(2, 1), r(2, 1), none, "chain from a box's first, box");
    expect_term(&up.once.dim[0], r(3, 1), r(3, 1), r(3, 1), "chain to a box's first, box");
}

static int64_t euclid(int64_t a, int64_t b)
{
    return b == 0 ? a : euclid(b, a % b);
}

/* Twos, odd numbers and both: what the greatest common divisor is found by. */
Test(cost, ratios_are_in_lowest_terms)
{
    for (int64_t den = 1; den <= 130; den++)
        for (int64_t num = -130; num <= 130; num++) {
            const mc_ratio_t a = mc_ratio(num, den), b = mc_ratio_add(a, r(7, 12));
            const mc_ratio_t c = mc_ratio_mul(a, r(12, 35));
            cr_assert_eq(a.num * den, num * a.den);
            cr_assert_eq(euclid(a.num < 0 ? -a.num : a.num, a.den), 1);
            cr_assert_eq(b.num * den * 12, (num * 12 + 7 * den) * b.den);
            cr_assert_eq(euclid(b.num < 0 ? -b.num : b.num, b.den), 1);
            cr_assert_eq(c.num * den * 35, num * 12 * c.den);
            cr_assert_eq(euclid(c.num < 0 ? -c.num : c.num, c.den), 1);
        }
}

Test(cost, ratios_are_exact)
{
    cr_expect(mc_ratio_equal(mc_ratio(6, -4), (mc_ratio_t){-3, 2}));
    cr_expect(mc_ratio_equal(mc_ratio(0, 5), (mc_ratio_t){0, 1}));
    cr_expect(mc_ratio_equal(mc_ratio_add(r(1, 3), r(1, 6)), r(1, 2)));
    cr_expect(mc_ratio_equal(mc_ratio_add(r(1, 3), r(-1, 3)), r(0, 1)));
    cr_expect(mc_ratio_equal(mc_ratio_mul(r(4, 9), r(3, 8)), r(1, 6)));
    const int64_t big = INT64_C(3000000000);
    cr_expect(mc_ratio_equal(mc_ratio_mul(r(big, 7), r(7, big)), r(1, 1)));
    mc_ratio_t sum = r(0, 1);
    for (int32_t i = 0; i < 300000; i++)
        sum = mc_ratio_add(sum, r(1, 300000));
    cr_expect(mc_ratio_equal(sum, r(1, 1)));
    cr_expect_float_eq(mc_ratio_value(r(1, 3)), 1.0 / 3, 0);
}

Test(cost, seconds_take_each_dimension_its_link)
{
    const mc_links_t links = {
        .ndims = 2,
        .dim = {{.alpha = 1, .beta = 10, .gamma = 100, .ports = 1, .gap = 1},
                {.alpha = 1000, .beta = 1e4, .gamma = 1e5, .ports = 1, .gap = 1000}}};
    mc_cost_t cost = mc_cost_zero();
    cost.dim[0] = (mc_term_t){r(2, 1), r(1, 2), r(1, 4), r(0, 1), 0, r(3, 1)};
    cost.dim[1] = (mc_term_t){r(3, 1), r(0, 1), r(1, 8), r(0, 1), 0, r(3, 1)};
    cr_expect_float_eq(mc_cost_seconds(&cost, &links, 8), 2 + 40 + 200 + 3000 + 1e5, 1e-9);
    mc_links_t apart = links;
    apart.dim[1].gap = 100; /* two of the three messages follow in a row */
    cost.dim[1].row = r(2, 1);
    cr_expect_float_eq(mc_cost_seconds(&cost, &apart, 8), 2 + 40 + 200 + 1200 + 1e5, 1e-9);
    const mc_cost_t both = mc_cost_add(&cost, &cost);
    cr_expect_float_eq(mc_cost_seconds(&both, &links, 8), 2 * (2 + 40 + 200 + 3000 + 1e5), 1e-9);
}
