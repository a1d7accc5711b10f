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

Test(tune_fit, a_dimension_that_the_fit_leaves_nothing_has_its_messages_in_a_row)
{
    cr_expect_eq(mc_tune_alpha(9e-6, 3e-6, 20e-6), 9e-6);
    cr_expect_eq(mc_tune_alpha(1e-6, 3e-6, 20e-6), 3e-6, "a rank's own time is in it");
    cr_expect_eq(mc_tune_alpha(0, 0, 20e-6), 20e-6);
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
        shaped.correction[cases[i].port].burst = 12000;
        if (cases[i].other >= 0)
            shaped.correction[cases[i].other].burst = 12000;
        const double seconds = seconds_of(&mesh, &shaped, MESHCOLL_ALLREDUCE, text, MC_TUNE_BURST) -
                               seconds_of(&mesh, &shaped, MESHCOLL_ALLREDUCE, text, 0);
        const mc_estimate_t none = {seconds, 0, MC_LEAST_ROUNDS - 1},
                            vague = {seconds, 1, MC_LEAST_ROUNDS},
                            sure = {seconds, 0, MC_LEAST_ROUNDS};
        cr_assert_eq(mc_tune_keep_burst(&mesh, &none, &found), MESHCOLL_OK);
        cr_assert_eq(mc_tune_keep_burst(&mesh, &vague, &found), MESHCOLL_OK);
        cr_expect_eq(found.correction[cases[i].port].burst, 0,
                     "too few rounds, too large an error");
        cr_assert_eq(mc_tune_keep_burst(&mesh, &sure, &found), MESHCOLL_OK);
        for (int32_t d = 0; d < mesh.ndims; d++)
            cr_expect_float_eq(
                found.correction[d].burst, d == cases[i].port || d == cases[i].other ? 12000 : 0, 2,
                "%s of %s: %g", mesh.dim[d].name, cases[i].mesh, found.correction[d].burst);
    }
}

Test(tune_fit, a_median_has_an_error)
{
    mc_series_t s = {0};
    cr_expect_eq(mc_series_median(&s), 0);
    cr_expect_eq(mc_series_estimate(&s).n, 0);
    for (int i = 0; i < 9; i++)
        mc_series_keep(&s, (i * 5) % 9);
    const mc_estimate_t e = mc_series_estimate(&s);
    cr_expect_eq(e.value, 4);
    cr_expect_float_eq(e.error, 0.93 * (6 - 2) / 3, 1e-12);
    cr_expect_eq(e.n, 9);
    cr_expect_eq(s.time[1], 5, "the series stays in the order of the rounds");
    cr_expect(mc_estimate_is_sure(&e));
    cr_expect_not(mc_estimate_is_sure(&(mc_estimate_t){2 * e.error, e.error, 9}));
    cr_expect_not(mc_estimate_is_sure(&(mc_estimate_t){4, 0, MC_LEAST_ROUNDS - 1}));
    cr_expect_not(mc_estimate_is_sure(&(mc_estimate_t){-4, 1, 9}));
}
