/* What meshcoll tune makes of times: links that take so long come out of the times they take. */
#include "compose/planner.h"
#include "tools/tune_fit.h"

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
    cr_assert_eq(mc_tune_fit_at(mesh, seconds, bytes, NULL, 0, &point), MESHCOLL_OK);
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
    cr_assert_eq(mc_tune_fit_at(&mesh, seconds, 1 << 20, NULL, 0, &point), MESHCOLL_OK);
    cr_expect_float_eq(point.bus, 70e-12, 2e-12);
    cr_expect_float_eq(point.gamma, 40e-12, 4e-12);
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
    cr_assert_eq(mc_tune_fit_at(&mesh, seconds, 1 << 20, &smallest, 1, &point), MESHCOLL_OK);
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
    cr_assert_eq(mc_tune_fit_at(&mesh, seconds, 1 << 20, smaller, 2, &point), MESHCOLL_OK);
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

/* Saved up is what leaves a box: of racks of boxes at the port of the box, over whose wire racks go. */
Test(tune_fit, a_burst_is_that_of_the_port_it_passes)
{
    static const struct {
        const char *mesh, *links;
        int32_t port;
    } cases[] = {
        {"box=4,gpu=4", "lab", 0}, {"rack=2,box=2,gpu=4", "lab", 1}, {"x=1,y=3", "lab", 1}};
    for (size_t i = 0; i < MC_COUNT(cases); i++) {
        mc_mesh_t mesh;
        char text[MC_TUNE_SHAPE];
        cr_assert_eq(mc_mesh_parse(cases[i].mesh, &mesh), MESHCOLL_OK);
        cr_assert(mc_tune_burst(&mesh, text));
        mc_links_t found = links_of(cases[i].links, &mesh), shaped = found;
        shaped.dim[cases[i].port].pulled = found.dim[cases[i].port].pulled = false;
        shaped.dim[cases[i].port].burst = 12000;
        const double seconds = seconds_of(&mesh, &shaped, MESHCOLL_ALLREDUCE, text, MC_TUNE_BURST) -
                               seconds_of(&mesh, &shaped, MESHCOLL_ALLREDUCE, text, 0);
        cr_assert_eq(mc_tune_keep_burst(&mesh, seconds, &found), MESHCOLL_OK);
        for (int32_t d = 0; d < mesh.ndims; d++)
            cr_expect_float_eq(found.dim[d].burst, d == cases[i].port ? 12000 : 0, 2,
                               "%s of %s: %g", mesh.dim[d].name, cases[i].mesh, found.dim[d].burst);
    }
}
