/* What meshcoll tune makes of times: links that take so long come out of the times they take. */
#include "compose/algorithms/registry.h"
#include "compose/planner/planner.h"
#include "tools/tune/tune_fit.h"

#include <criterion/criterion.h>

static mc_links_t links_of(const char *text, const mc_mesh_t *mesh)
{
    mc_links_t links;
    cr_assert_eq(mc_links_parse(text, mesh, &links), MESHCOLL_OK, "%s", meshcoll_last_error());
    return links;
}

static double seconds_of(const mc_mesh_t *mesh, const mc_links_t *links,
                         meshcoll_collective_t collective, const char *text, double bytes)
{
    mc_strategy_t strategy;
    cr_assert_eq(mc_strategy_parse(text, collective, mesh, &strategy), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    return mc_strategy_seconds(&strategy, mesh, links, 0, bytes);
}

/* Through the model's own eyes: as a segment of so many bytes keeps busy. */
static mc_tune_pieces_t seen(const mc_link_t *link, double bytes)
{
    const mc_ratio_t none = {0, 1}, one = {1, 1};
    const mc_term_t term = {one, one, none, one, none, 1, none, 1};
    const mc_busy_t busy = mc_term_busy(&term, link, bytes);
    return (mc_tune_pieces_t){bytes, mc_busy_both(busy.link, busy.own)};
}

Test(tune_fit, pieces_of_two_sizes_tell_their_headers)
{
    mc_link_t link = {.alpha = 9e-6, .gap = 2e-6, .cpu = 3e-6, .beta = 42e-9, .header = 100};
    const mc_tune_pieces_t fine = seen(&link, 4096), coarse = seen(&link, 32768);
    cr_expect_float_eq(mc_tune_header(&coarse, &fine, link.gap + link.cpu), 100, 1e-6);
    cr_expect_gt(mc_tune_header(&coarse, &fine, 0), 100, "ranks' time is the wire's then");
    cr_expect_eq(mc_tune_header(&fine, &fine, 0), 0, "nothing tells");
    cr_expect_eq(mc_tune_header(&coarse, &fine, 1), 0, "ranks have more to do than the wire");
}

Test(tune_fit, a_dimension_that_the_fit_leaves_nothing_has_its_messages_in_a_row)
{
    cr_expect_eq(mc_tune_alpha(9e-6, 3e-6, 20e-6), 9e-6);
    cr_expect_eq(mc_tune_alpha(1e-6, 3e-6, 20e-6), 3e-6, "a rank's own time is in it");
    cr_expect_eq(mc_tune_alpha(0, 0, 20e-6), 20e-6);
}

/* Seconds of all probes; how many there are. */
static int32_t probed(const mc_mesh_t *mesh, const mc_links_t *links, double bytes,
                      double seconds[MC_TUNE_PROBES])
{
    mc_tune_probe_t probe;
    int32_t n = 0;
    for (; mc_tune_probe(mesh, n, &probe); n++)
        seconds[n] = seconds_of(mesh, links, probe.collective, probe.strategy, bytes);
    return n;
}

/* The link of a line whose collectives take as long as `links` says. */
static mc_links_t fitted(const mc_mesh_t *mesh, const mc_links_t *links, double bytes)
{
    double seconds[MC_TUNE_PROBES] = {0};
    mc_link_point_t point;
    mc_links_t found = *links;
    probed(mesh, links, bytes, seconds);
    cr_assert_eq(mc_tune_fit_at(mesh, seconds, bytes, NULL, 0, false, &point), MESHCOLL_OK);
    cr_assert_eq(point.bytes, bytes);
    found.dim[0].n_points = 1;
    found.dim[0].point[0] = point;
    return found;
}

static void expect_same(const char *mesh_text, const char *text, double bytes)
{
    static const struct {
        meshcoll_collective_t collective;
        const char *strategy;
    } others[] = {{MESHCOLL_ALLTOALL, "alltoall:digits(gpu)"},
                  {MESHCOLL_REDUCE_SCATTER, "reduce_scatter:halving(gpu)"},
                  {MESHCOLL_BCAST, "bcast:chain(gpu)"},
                  {MESHCOLL_BCAST, "scatter:mst(gpu) allgather:doubling(gpu)"},
                  {MESHCOLL_REDUCE, "reduce:chain(gpu)"},
                  {MESHCOLL_REDUCE, "reduce_scatter:ring(gpu) gather:mst(gpu)"},
                  {MESHCOLL_ALLREDUCE, "reduce:mst(gpu) bcast:star(gpu)"},
                  {MESHCOLL_ALLREDUCE, "allreduce:fullmesh(gpu)"}};
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse(mesh_text, &mesh), MESHCOLL_OK);
    const mc_links_t given = links_of(text, &mesh), found = fitted(&mesh, &given, bytes);
    for (size_t i = 0; i < MC_COUNT(others); i++) {
        const double wanted =
            seconds_of(&mesh, &given, others[i].collective, others[i].strategy, bytes);
        const double got =
            seconds_of(&mesh, &found, others[i].collective, others[i].strategy, bytes);
        cr_expect_float_eq(got, wanted, 0.02 * wanted, "%s on %s: %g s, not %g s",
                           others[i].strategy, text, got, wanted);
    }
}

Test(tune_fit, a_line_costs_what_its_times_say)
{
    expect_same("gpu=4", "gpu=alpha:2us;gap:300ns;beta:30ps/B;bus:70ps/B;gamma:40ps/B;pulled:yes",
                65536);
    expect_same("gpu=4", "gpu=alpha:500ns;gap:100ns;cpu:200ns;beta:1ns/B;pulled:yes", 4096);
    expect_same("gpu=5", "gpu=alpha:9us;gap:0;beta:100ps/B;bus:20ps/B;gamma:90ps/B;pulled:yes",
                8 << 20);
}

Test(tune_fit, a_probe_that_fits_badly_does_not_bend_the_rest)
{
    mc_mesh_t mesh;
    mc_link_point_t point;
    double seconds[MC_TUNE_PROBES];
    cr_assert_eq(mc_mesh_parse("gpu=4", &mesh), MESHCOLL_OK);
    const mc_links_t links =
        links_of("gpu=alpha:2us;gap:300ns;beta:30ps/B;bus:70ps/B;gamma:40ps/B;pulled:yes", &mesh);
    const int32_t n = probed(&mesh, &links, 1 << 20, seconds);
    seconds[n - 1] *= 2;
    cr_assert_eq(mc_tune_fit_at(&mesh, seconds, 1 << 20, NULL, 0, false, &point), MESHCOLL_OK);
    cr_expect_float_eq(point.bus, 70e-12, 2e-12);
    cr_expect_float_eq(point.gamma, 40e-12, 4e-12);
}

Test(tune_fit, the_smallest_size_is_of_messages_alone)
{
    mc_mesh_t mesh;
    mc_link_point_t point;
    double seconds[MC_TUNE_PROBES];
    cr_assert_eq(mc_mesh_parse("gpu=8", &mesh), MESHCOLL_OK);
    const mc_links_t links = links_of("gpu=alpha:3us;gap:500ns;beta:0;bus:7ns/B;pulled:yes", &mesh);
    probed(&mesh, &links, 64, seconds);
    cr_assert_eq(mc_tune_fit_at(&mesh, seconds, 64, NULL, 0, true, &point), MESHCOLL_OK);
    cr_expect_eq(point.beta, 0);
    cr_expect_eq(point.bus, 0);
    cr_expect_eq(point.gamma, 0);
}

Test(tune_fit, a_message_takes_half_of_what_it_does_at_the_smallest_size_at_least)
{
    mc_mesh_t mesh;
    double seconds[MC_TUNE_PROBES];
    const mc_link_point_t smallest = {.alpha = 2e-6, .gap = 1e-6, .cpu = 200e-9};
    mc_link_point_t point;
    cr_assert_eq(mc_mesh_parse("gpu=4", &mesh), MESHCOLL_OK);
    const mc_links_t links = links_of("gpu=alpha:0;beta:30ps/B;bus:70ps/B;pulled:yes", &mesh);
    probed(&mesh, &links, 1 << 20, seconds);
    cr_assert_eq(mc_tune_fit_at(&mesh, seconds, 1 << 20, &smallest, 1, false, &point), MESHCOLL_OK);
    cr_expect_eq(point.alpha, 1e-6);
    cr_expect_eq(point.gap, 500e-9);
    cr_expect_eq(point.cpu, 100e-9);
}

Test(tune_fit, a_message_takes_twice_of_what_it_does_at_the_next_smaller_size_at_most)
{
    mc_mesh_t mesh;
    double seconds[MC_TUNE_PROBES];
    const mc_link_point_t smaller[] = {{.alpha = 1e-6, .gap = 1e-6, .cpu = 1e-6},
                                       {.alpha = 2e-6, .gap = 500e-9, .cpu = 500e-9}};
    mc_link_point_t point;
    cr_assert_eq(mc_mesh_parse("gpu=4", &mesh), MESHCOLL_OK);
    const mc_links_t links =
        links_of("gpu=alpha:50us;gap:0;cpu:30us;beta:30ps/B;bus:70ps/B;pulled:yes", &mesh);
    probed(&mesh, &links, 1 << 20, seconds);
    cr_assert_eq(mc_tune_fit_at(&mesh, seconds, 1 << 20, smaller, 2, false, &point), MESHCOLL_OK);
    cr_expect_eq(point.alpha, 4e-6);
    cr_expect_eq(point.cpu, 4e-6);
    cr_expect_geq(point.gap, 500e-9);
}

Test(tune_fit, only_a_single_line_has_times_of_its_own)
{
    mc_mesh_t mesh;
    mc_tune_probe_t probe;
    cr_assert_eq(mc_mesh_parse("box=2,gpu=4", &mesh), MESHCOLL_OK);
    cr_expect_not(mc_tune_probe(&mesh, 0, &probe));
    cr_assert_eq(mc_mesh_parse("box=1,gpu=4", &mesh), MESHCOLL_OK);
    cr_expect(mc_tune_probe(&mesh, 0, &probe));
    cr_expect_eq(probe.dim, 1);
}

Test(tune_fit, every_algorithm_that_is_planned_is_timed_alone)
{
    mc_mesh_t line, grid;
    mc_tune_probe_t probe;
    int32_t n = 0;
    cr_assert_eq(mc_mesh_parse("box=1,gpu=4", &line), MESHCOLL_OK);
    cr_assert_eq(mc_mesh_parse("box=2,gpu=4", &grid), MESHCOLL_OK);
    for (int32_t a = 0; a < mc_n_algorithms; a++) {
        mc_strategy_t strategy;
        cr_expect_not(mc_tune_single(&grid, a, &probe));
        const bool alone = !mc_algorithms[a].composite && !mc_algorithms[a].plane;
        cr_expect_eq(mc_tune_single(&line, a, &probe), alone);
        if (!alone)
            continue;
        n++;
        cr_assert_eq(mc_strategy_parse(probe.strategy, probe.collective, &line, &strategy),
                     MESHCOLL_OK, "%s", meshcoll_last_error());
        cr_expect_eq(strategy.phase[0].algorithm, a);
        cr_expect_eq(probe.dim, 1);
    }
    mc_tune_pair_t pair[MC_TUNE_PAIRS];
    cr_expect_eq(mc_tune_pairs(&grid, pair), 0);
    cr_expect_leq(n + mc_tune_pairs(&line, pair), MC_LINK_FACTORS, "there is room for all");
}

static bool is_pair(const mc_tune_pair_t *pair, meshcoll_collective_t asked,
                    meshcoll_collective_t second)
{
    return pair->asked == asked && mc_algorithms[pair->second].collective == second;
}

Test(tune_fit, every_second_phase_that_is_planned_is_timed_behind_a_first_one)
{
    mc_mesh_t line;
    mc_tune_pair_t pair[MC_TUNE_PAIRS];
    int32_t allgathers = 0, bcasts = 0;
    cr_assert_eq(mc_mesh_parse("box=1,gpu=4", &line), MESHCOLL_OK);
    const int32_t n = mc_tune_pairs(&line, pair);
    cr_assert_lt(n, MC_TUNE_PAIRS, "there is room for all");
    for (int32_t k = 0; k < n; k++) {
        allgathers += is_pair(&pair[k], MESHCOLL_ALLREDUCE, MESHCOLL_ALLGATHER);
        bcasts += is_pair(&pair[k], MESHCOLL_ALLGATHER, MESHCOLL_BCAST);
        for (mc_choices_t left = pair[k].first; left;) {
            const int32_t first = mc_choices_take(&left);
            mc_tune_probe_t probe;
            mc_strategy_t strategy;
            mc_tune_pair_probe(&line, &pair[k], first, &probe);
            cr_assert_eq(mc_strategy_parse(probe.strategy, pair[k].asked, &line, &strategy),
                         MESHCOLL_OK, "%s", meshcoll_last_error());
            cr_assert_eq(strategy.n_phases, 2);
            cr_expect_eq(strategy.phase[0].algorithm, first);
            cr_expect_eq(strategy.phase[1].algorithm, pair[k].second);
            cr_expect_eq(probe.dim, 1);
        }
    }
    cr_expect_eq(allgathers, 4);
    cr_expect_eq(bcasts, 3, "all that are no composite");
}

/* Whatever the first phase's factor and the second one's own: with the one found the pair takes what it took. */
Test(tune_fit, a_pair_takes_as_long_as_it_was_seen_to)
{
    mc_mesh_t line;
    mc_tune_pair_t pair[MC_TUNE_PAIRS];
    cr_assert_eq(mc_mesh_parse("gpu=4", &line), MESHCOLL_OK);
    const mc_links_t links = links_of("shm,gpu=shm;reduce_scatter.ring:1.5;allgather.ring:2;"
                                      "scatter.star:0.6;gather.mst:3",
                                      &line);
    const int32_t n = mc_tune_pairs(&line, pair);
    for (int32_t k = 0; k < n; k++) {
        mc_tune_probe_t probe;
        double factor, none;
        mc_links_t with = links;
        mc_choices_t first = pair[k].first;
        const mc_algorithm_t *const second = &mc_algorithms[pair[k].second];
        mc_tune_pair_probe(&line, &pair[k], mc_choices_take(&first), &probe);
        const double seen =
            1.2 * seconds_of(&line, &links, probe.collective, probe.strategy, 1 << 20);
        cr_assert_eq(mc_tune_pair_factor(&line, &links, &probe, 1 << 20, seen, &factor),
                     MESHCOLL_OK);
        const mc_factor_key_t key = {0, pair[k].asked, second->collective, second->name};
        mc_links_set_factor(&with, &key, 0, factor);
        cr_expect_float_eq(seconds_of(&line, &with, probe.collective, probe.strategy, 1 << 20) /
                               seen,
                           1, 2e-3, "%s", probe.strategy);
        cr_assert_eq(mc_tune_pair_factor(&line, &links, &probe, 1 << 20, 0, &none), MESHCOLL_OK);
        cr_expect_float_eq(none, mc_links_factor(&links, &key, 0) / 2e3, 1e-9,
                           "half of its own at least");
    }
}

Test(tune_fit, links_of_a_line_fit_into_their_text)
{
    mc_mesh_t line;
    mc_tune_pair_t pair[MC_TUNE_PAIRS];
    mc_tune_probe_t probe;
    char buffer[MC_LINKS_TEXT];
    cr_assert_eq(mc_mesh_parse("gpu=4", &line), MESHCOLL_OK);
    mc_links_t links = links_of("shm", &line);
    const double third = 1e-6 / 3;
    for (int32_t k = 0; k < MC_LINK_POINTS; k++)
        links.dim[0].point[links.dim[0].n_points++] =
            (mc_link_point_t){(1 << 20) + k * 1e5, third,       third / 7,  third / 11,
                              third / 1e3,         third / 9e3, third / 8e3};
    for (int32_t a = 0; a < mc_n_algorithms; a++)
        for (int32_t k = 0; k < MC_LINK_POINTS && mc_tune_single(&line, a, &probe); k++) {
            const mc_factor_key_t key = {0, probe.collective, probe.collective,
                                         mc_algorithms[a].name};
            mc_links_set_factor(&links, &key, k, 11.111);
        }
    for (int32_t i = mc_tune_pairs(&line, pair) - 1; i >= 0; i--)
        for (int32_t k = 0; k < MC_LINK_POINTS; k++) {
            const mc_algorithm_t *const second = &mc_algorithms[pair[i].second];
            const mc_factor_key_t key = {0, pair[i].asked, second->collective, second->name};
            mc_links_set_factor(&links, &key, k, 11.111);
        }
    mc_text_t text = mc_text(buffer, sizeof buffer);
    mc_links_print(&links, &line, &text);
    mc_links_t again;
    cr_expect_lt(text.length, sizeof buffer - 1);
    cr_assert_eq(mc_links_parse(buffer, &line, &again), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_expect_eq(again.n_factors, links.n_factors);
}

/* Saved up is what leaves a box: of racks of boxes at the port of the box, over whose wire racks go. */
Test(tune_fit, a_burst_is_that_of_the_port_it_passes)
{
    static const struct {
        const char *mesh, *links;
        int32_t port, other; /* dimensions; -1: none */
    } cases[] = {{"box=4,gpu=4", "lab", 0, -1},
                 {"rack=2,box=2,gpu=4", "lab", 1, -1},
                 {"x=1,y=3", "lab", 1, -1},
                 {"x=4,y=4", "x=lab-net;wire:own,y=lab-net;wire:own", 0, 1}};
    for (size_t i = 0; i < MC_COUNT(cases); i++) {
        mc_mesh_t mesh;
        char text[MC_TUNE_SHAPE];
        cr_assert_eq(mc_mesh_parse(cases[i].mesh, &mesh), MESHCOLL_OK);
        cr_assert(mc_tune_burst(&mesh, text));
        mc_links_t found = links_of(cases[i].links, &mesh), shaped = found;
        shaped.dim[cases[i].port].pulled = found.dim[cases[i].port].pulled = false;
        shaped.dim[cases[i].port].burst = 12000;
        if (cases[i].other >= 0)
            shaped.dim[cases[i].other].burst = 12000;
        const double seconds = seconds_of(&mesh, &shaped, MESHCOLL_ALLREDUCE, text, MC_TUNE_BURST) -
                               seconds_of(&mesh, &shaped, MESHCOLL_ALLREDUCE, text, 0);
        cr_assert_eq(mc_tune_keep_burst(&mesh, seconds, &found), MESHCOLL_OK);
        for (int32_t d = 0; d < mesh.ndims; d++)
            cr_expect_float_eq(found.dim[d].burst,
                               d == cases[i].port || d == cases[i].other ? 12000 : 0, 2,
                               "%s of %s: %g", mesh.dim[d].name, cases[i].mesh, found.dim[d].burst);
    }
}
