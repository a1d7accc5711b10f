/* From what was measured to links: coarse steps, gaps, ports, and the cores that ranks share. */
#include "compose/planner/planner.h"
#include "runtime/calibrate/fit.h"
#include "runtime/calibrate/series.h"

#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

static mc_mesh_t mesh_of(const char *text)
{
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse(text, &mesh), MESHCOLL_OK);
    return mesh;
}

static mc_links_t links_of(const mc_sight_t *sight, const mc_mesh_t *mesh)
{
    mc_links_t links;
    cr_assert_eq(mc_links_parse(NULL, mesh, &links), MESHCOLL_OK);
    mc_sight_links(sight, true, &links);
    cr_assert_eq(mc_links_check(&links, mesh), MESHCOLL_OK, "%s", meshcoll_last_error());
    return links;
}

/* 4 boxes of 4, one NIC of 200 Mbit/s each. */
static mc_sight_t sample(void)
{
    return (mc_sight_t){.dim = {{.ranks = 4,
                                 .lines = 4,
                                 .streams = true,
                                 .round = 21e-6,
                                 .row = 5e-6,
                                 .together = 164e-9,
                                 .alone = 41e-9},
                                {.ranks = 4,
                                 .lines = 1,
                                 .pulled = true,
                                 .round = 0.9e-6,
                                 .row = 0.31e-6,
                                 .together = 0.11e-9,
                                 .alone = 0.11e-9}},
                        .gamma = 0.185e-9,
                        .ranks = 16};
}

Test(calibrate_fit, rounds_to_the_nearest_step)
{
    static const struct {
        double number;
        int32_t steps;
        double nearest;
    } cases[] = {{1e-6, 6, 1e-6},        {1.2e-6, 6, 1e-6},     {1.25e-6, 6, 1.5e-6},
                 {8.2e-6, 6, 6.8e-6},    {8.3e-6, 6, 10e-6},    {8.3e-6, 12, 8.2e-6},
                 {9.2e-6, 12, 10e-6},    {41e-9, 12, 39e-9},    {44e-9, 12, 47e-9},
                 {330e-12, 6, 330e-12},  {0.9e-3, 12, 0.82e-3}, {0.4, 12, 0.39},
                 {999e-6, 6, 1e-3},      {3e-13, 6, 3.3e-13},   {2, 6, 2.2},
                 {41.83e-9, 0, 41.8e-9}, {999.6e-6, 0, 1e-3}};
    for (size_t i = 0; i < MC_COUNT(cases); i++)
        cr_expect_float_eq(mc_coarse(cases[i].number, cases[i].steps), cases[i].nearest,
                           1e-12 * cases[i].nearest, "%g in %d steps: %.17g, expected %g",
                           cases[i].number, cases[i].steps,
                           mc_coarse(cases[i].number, cases[i].steps), cases[i].nearest);
    cr_expect_eq(mc_coarse(0, 6), 0);
    cr_expect_eq(mc_coarse(-1, 6), 0);
    cr_expect_eq(mc_coarse(NAN, 6), 0);
}

/* No step is off by more than half of one, and what was rounded stays. */
Test(calibrate_fit, steps_are_even)
{
    for (int32_t steps = 6; steps <= 12; steps += 6)
        for (double number = 1e-12; number < 1; number *= 1.01) {
            const double coarse = mc_coarse(number, steps);
            const double off = fabs(log(coarse / number)), most = log(10) / steps / 2;
            cr_expect_lt(off, 1.25 * most, /* the standard's numbers have two digits */
                         "%g becomes %g", number, coarse);
            cr_expect_eq(mc_coarse(coarse, steps), coarse, "%.17g becomes %.17g", coarse,
                         mc_coarse(coarse, steps));
        }
}

Test(calibrate_fit, makes_links_as_they_print)
{
    char text[1024];
    const mc_mesh_t mesh = mesh_of("box=4,gpu=4");
    const mc_sight_t sight = sample();
    const mc_links_t links = links_of(&sight, &mesh);
    mc_text_t printed = mc_text(text, sizeof text);
    mc_links_print(&links, &mesh, &printed);
    cr_expect_str_eq(text, "box=alpha:22us;gap:4.7us;beta:39ns/B;gamma:180ps/B;ports:1;pulled:no,"
                           "gpu=alpha:1us;gap:330ns;beta:120ps/B;gamma:180ps/B;ports:1;pulled:yes");
}

/* Of a token bucket: a power of two, as it varies most, and the corrections of cores stay beside it. */
Test(calibrate_fit, keeps_what_an_idle_port_passes)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=4");
    mc_sight_t sight = sample();
    cr_expect_eq(links_of(&sight, &mesh).correction[0].burst, 0);
    sight.dim[0].burst = 13e3;
    sight.dim[1].eager = 32768;
    cr_expect_eq(links_of(&sight, &mesh).correction[0].burst, 16384);
    cr_expect_eq(links_of(&sight, &mesh).correction[1].burst, 0);
    cr_expect_eq(links_of(&sight, &mesh).correction[1].eager, 32768);
    sight.crowd = 8;
    cr_expect_eq(links_of(&sight, &mesh).correction[0].burst, 16384);
    mc_links_t fine;
    cr_assert_eq(mc_links_parse(NULL, &mesh, &fine), MESHCOLL_OK);
    mc_sight_links(&sight, false, &fine);
    cr_expect_eq(fine.correction[0].burst, 13e3);
}

/* Two measurements that differ by a few percent are the same links, but at an edge between two steps. */
Test(calibrate_fit, is_the_same_for_measurements_that_differ_a_little)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=4");
    const mc_sight_t one = sample();
    mc_sight_t other = one;
    other.dim[0].round *= 1.05;
    other.dim[0].row *= 0.95;
    other.dim[0].together *= 1.02;
    other.dim[0].alone *= 1.02;
    other.gamma *= 0.97;
    char text[2][1024];
    for (int i = 0; i < 2; i++) {
        const mc_links_t links = links_of(i ? &other : &one, &mesh);
        mc_text_t printed = mc_text(text[i], sizeof text[i]);
        mc_links_print(&links, &mesh, &printed);
    }
    cr_expect_str_eq(text[0], text[1]);
}

Test(calibrate_fit, counts_ports_by_what_one_line_gains_alone)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=4");
    mc_sight_t sight = sample();
    sight.dim[0].alone = sight.dim[0].together = 42e-9; /* a NIC each */
    cr_expect_eq(links_of(&sight, &mesh).dim[0].ports, 4);
    sight.dim[0].alone = sight.dim[0].together / 2;
    cr_expect_eq(links_of(&sight, &mesh).dim[0].ports, 2);
    sight.dim[0].alone = 0; /* it was not measured in time */
    cr_expect_eq(links_of(&sight, &mesh).dim[0].ports, 1);
}

Test(calibrate_fit, splits_rounds_where_ranks_share_cores)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=4");
    mc_sight_t sight = sample();
    sight.crowd = 8;
    sight.dim[0].round = 76e-6; /* of 4 ranks, whose messages take 40 us */
    sight.dim[0].row = 160e-6;  /* of 16 */
    const mc_links_t links = links_of(&sight, &mesh);
    cr_expect_float_eq(links.correction[0].cpu, 10e-6, 1e-12);
    cr_expect_float_eq(links.dim[0].alpha, 33e-6, 1e-12);
    cr_expect_eq(links.dim[0].gap, 0);
    /* memory that was not measured has times of its own */
    sight.dim[1] = (mc_seen_t){.ranks = 4, .pulled = true};
    const mc_links_t unseen = links_of(&sight, &mesh);
    cr_expect_float_eq(unseen.dim[1].gap / unseen.correction[1].cpu, 2, 1e-9,
                       "16 ranks, 8 to a core");
    cr_expect_gt(unseen.dim[1].alpha, unseen.dim[1].gap);
}

/* On 2 cores whatever has few rounds and sends little in all is the fastest (docs/lab-notes/calibration.md): a star, where
 * all exchange with all one round; on 64 cores not, however many ranks there are. */
Test(calibrate_fit, ranks_that_share_few_cores_take_stars)
{
    static const struct {
        const char *mesh;
        double crowd;
        meshcoll_collective_t collective;
        uint64_t bytes;
        const char *best;
    } row[] = {{"rank=4", 2, MESHCOLL_ALLREDUCE, 1 << 14, "reduce:star(rank) bcast:star(rank)"},
               {"rank=4", 2, MESHCOLL_ALLREDUCE, 1 << 16, "reduce:star(rank) bcast:star(rank)"},
               {"rank=4", 2, MESHCOLL_ALLREDUCE, 1 << 18, "reduce:star(rank) bcast:star(rank)"},
               {"rank=16", 8, MESHCOLL_ALLREDUCE, 64, "reduce:star(rank) bcast:star(rank)"},
               {"rank=4", 2, MESHCOLL_BCAST, 64, "bcast:star(rank)"},
               {"rank=4", 2, MESHCOLL_BCAST, 1 << 10, "bcast:star(rank)"},
               {"rank=8", 4, MESHCOLL_REDUCE, 1 << 18, "reduce:star(rank)"},
               {"rank=4", 2, MESHCOLL_ALLGATHER, 1 << 18, "allgather:fullmesh(rank)"},
               {"rank=4", 2, MESHCOLL_ALLTOALL, 64, "alltoall:pairwise(rank)"},
               {"rank=8", 4, MESHCOLL_ALLTOALL, 64, "alltoall:pairwise(rank)"},
               {"rank=96", 1.5, MESHCOLL_ALLREDUCE, 1 << 24, NULL}};
    for (size_t i = 0; i < MC_COUNT(row); i++) {
        const mc_mesh_t mesh = mesh_of(row[i].mesh);
        const mc_sight_t sight = {.dim = {{.ranks = mesh.size, .pulled = true}},
                                  .ranks = mesh.size,
                                  .crowd = row[i].crowd};
        const mc_links_t links = links_of(&sight, &mesh);
        const mc_planner_query_t query = {.bytes = row[i].bytes};
        char best[MC_STRATEGY_TEXT];
        mc_text_t text = mc_text(best, sizeof best);
        mc_ranked_t ranked;
        cr_assert_eq(mc_planner_best(row[i].collective, &mesh, &links, &query, &ranked), 0, "%s",
                     meshcoll_last_error());
        mc_strategy_print(&ranked.strategy, &mesh, &text);
        if (row[i].best)
            cr_expect_str_eq(best, row[i].best, "%s, row %zu: %s", row[i].mesh, i, best);
        else
            cr_expect_null(strstr(best, "reduce:star"), "%s, row %zu: %s", row[i].mesh, i, best);
        cr_expect_eq(mc_lower_bound(row[i].collective, &mesh, &links, 1e6), 0,
                     "nothing is known that bounds it");
    }
}

Test(calibrate_fit, leaves_alone_what_was_not_measured)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=4");
    mc_links_t generic;
    mc_sight_t sight = sample();
    cr_assert_eq(mc_links_parse(NULL, &mesh, &generic), MESHCOLL_OK);
    sight.dim[0].ranks = 0;
    const mc_links_t links = links_of(&sight, &mesh);
    cr_expect_eq(links.dim[0].alpha, generic.dim[0].alpha);
    cr_expect_eq(links.dim[0].beta, generic.dim[0].beta);
    cr_expect_neq(links.dim[1].alpha, generic.dim[1].alpha);
}

Test(calibrate_fit, series_are_in_order)
{
    static mc_series_t s;
    for (int i = 0; i < MC_MOST_ROUNDS + 10; i++)
        mc_series_keep(&s, (i * 37) % 101);
    cr_expect_eq(s.n, MC_MOST_ROUNDS);
    for (int i = 1; i < s.n; i++)
        cr_expect_leq(s.time[i - 1], s.time[i]);
    s.n = 0;
    cr_expect_eq(mc_series_median(&s), 0);
    for (int i = 5; i > 0; i--)
        mc_series_keep(&s, i);
    cr_expect_eq(mc_series_median(&s), 3);
    cr_expect_eq(mc_series_quantile(&s, 0.25), 2);
    cr_expect_float_eq(mc_series_estimate(&s).error, 0.93 * 2 / sqrt(5), 1e-12);
}
