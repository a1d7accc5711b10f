/* The table of measured strategies: its text, its times, and the planner that takes the fastest of them. */
#include "compose/planner/planner.h"

#include "support/places.h"

#include <stdio.h>
#include <string.h>

static const char table[] = "measured=1000B/3000B/1e6B;bcast bcast:mst(gpu) 1us/2us/900us;"
                            "bcast scatter:mst(gpu) allgather:ring(gpu) 2us/2.5us/300us;"
                            "reduce_scatter reduce_scatter:ring(gpu) 5us/6us/7us";

static place_t place; /* its links are freed at the end of each test */

static void close_place(void)
{
    mc_links_free(&place.links);
}

TestSuite(measured, .fini = close_place);

static place_t measured_place(void)
{
    char links[512];
    snprintf(links, sizeof links, "shm,%s", table);
    return place = place_of("box=1,gpu=4", links);
}

static mc_ranked_t best_of(const place_t *at, meshcoll_collective_t collective, double bytes,
                           bool in_order)
{
    const mc_planner_query_t query = {.bytes = bytes, .max_segments = 64, .in_order = in_order};
    mc_ranked_t best;
    cr_assert_eq(mc_planner_best(collective, &at->mesh, &at->links, &query, &best), MESHCOLL_OK);
    return best;
}

static void expect_choice(const place_t *at, double bytes, const char *strategy, double seconds)
{
    char buffer[MC_STRATEGY_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const mc_ranked_t best = best_of(at, MESHCOLL_BCAST, bytes, false);
    mc_strategy_print(&best.strategy, &at->mesh, &text);
    cr_expect_str_eq(buffer, strategy, "%g bytes: %s", bytes, buffer);
    cr_expect_float_eq(best.seconds, seconds, 1e-12);
    cr_expect_eq(best.seconds,
                 mc_strategy_seconds(&best.strategy, &at->mesh, &at->links, 0, bytes));
    cr_expect_neq(best.seconds,
                  mc_strategy_modelled(&best.strategy, &at->mesh, &at->links, 0, bytes));
}

Test(measured, the_fastest_is_chosen_at_every_size)
{
    const place_t at = measured_place();
    const char *const pair = "scatter:mst(gpu) allgather:ring(gpu)";
    expect_choice(&at, 8, "bcast:mst(gpu)", 1e-6);
    expect_choice(&at, 2000, "bcast:mst(gpu)", 1.5e-6);
    expect_choice(&at, 3000, "bcast:mst(gpu)", 2e-6);
    expect_choice(&at, 1e6, pair, 300e-6);
    expect_choice(&at, 4e6, pair, 1200e-6);
}

Test(measured, what_the_table_lacks_is_modelled)
{
    const place_t at = measured_place(), plain = place_of("box=1,gpu=4", "shm");
    const mc_ranked_t gather = best_of(&at, MESHCOLL_GATHER, 4096, false),
                      wanted = best_of(&plain, MESHCOLL_GATHER, 4096, false);
    cr_expect(mc_strategy_equal(&gather.strategy, &wanted.strategy));
    cr_expect_eq(gather.seconds, wanted.seconds);
    /* a ring does not reduce in the order of ranks */
    const mc_ranked_t ordered = best_of(&at, MESHCOLL_REDUCE_SCATTER, 4096, true);
    cr_expect_eq(mc_strategy_check_order(&ordered.strategy, &at.mesh), MESHCOLL_OK);
}

/* A strategy that this version or mesh does not have. */
Test(measured, what_is_not_understood_is_left_out)
{
    const place_t at = place =
        place_of("gpu=4", "shm,measured=1KiB;bcast bcast:teleport(gpu) 1ns;"
                          "bcast bcast:star(box) 1ns;bcast bcast:star(gpu) 1s");
    cr_expect_eq(best_of(&at, MESHCOLL_BCAST, 1024, false).seconds, 1);
}

Test(measured, print_reads_back)
{
    char buffer[MC_LINKS_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    const place_t at = measured_place();
    mc_links_t again;
    mc_links_print(&at.links, &at.mesh, &text);
    cr_assert_eq(mc_links_parse(buffer, &at.mesh, &again), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    cr_assert_eq(mc_links_measured(&again)->n_rows, 3);
    for (int32_t i = 0; i < 3; i++) {
        const mc_measured_row_t *const a = &at.links.measured->row[i], *const b =
                                                                           &again.measured->row[i];
        cr_expect_eq(a->collective, b->collective);
        cr_expect_str_eq(a->strategy, b->strategy);
        cr_expect_arr_eq(a->seconds, b->seconds, sizeof a->seconds);
    }
    cr_expect_arr_eq(at.links.measured->bytes, again.measured->bytes, sizeof again.measured->bytes);
    mc_links_free(&again);
}

Test(measured, the_fullest_table_fits_into_its_text)
{
    char buffer[MC_LINKS_TEXT], strategy[MC_MEASURED_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    place_t at = place_of("gpu=4", "shm");
    static mc_measured_t fullest;
    mc_measured_t *const measured = &fullest;
    at.links.measured = &fullest;
    double seconds[MC_MEASURED_SIZES];
    mc_links_t again;
    memset(strategy, 'x', sizeof strategy - 1);
    strategy[sizeof strategy - 1] = '\0';
    measured->n_sizes = MC_MEASURED_SIZES;
    for (int32_t i = 0; i < MC_MEASURED_SIZES; i++) {
        measured->bytes[i] = (double)(UINT64_C(8388608) * (uint64_t)(i + 1));
        seconds[i] = 123e-6;
    }
    for (int32_t i = 0; i < MC_MEASURED_ROWS; i++)
        cr_assert_eq(mc_measured_add(measured, MESHCOLL_REDUCE_SCATTER, strategy, seconds), 0);
    cr_expect_eq(mc_measured_add(measured, MESHCOLL_BCAST, "x", seconds), MESHCOLL_ERR_INVALID_ARG);
    mc_links_print(&at.links, &at.mesh, &text);
    cr_assert_lt(text.length, sizeof buffer - 1, "%zu", text.length);
    cr_expect_eq(mc_links_parse(buffer, &at.mesh, &again), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    mc_links_free(&again);
}

static void expect_error(const char *text, const char *part)
{
    char links[256];
    mc_mesh_t mesh;
    mc_links_t found = {.ndims = -7};
    cr_assert_eq(mc_mesh_parse("gpu=4", &mesh), MESHCOLL_OK);
    snprintf(links, sizeof links, "shm,measured=%s", text);
    cr_expect_lt(mc_links_parse(links, &mesh, &found), 0, "%s", text);
    cr_expect(strstr(meshcoll_last_error(), part), "'%s' lacks '%s'", meshcoll_last_error(), part);
    cr_expect_eq(found.ndims, -7);
}

Test(measured, errors_say_what_is_expected)
{
    expect_error("", "SIZE/");
    expect_error("8", "SIZE/");
    expect_error("8B/16B/32B/64B/1KB/2KB/4KB/8KB/16KB", "up to 8 sizes");
    expect_error("2KB/1KB", "must ascend");
    expect_error("0", "must ascend");
    expect_error("1KB;bcast", "COLLECTIVE STRATEGY TIME");
    expect_error("1KB;bcast 1us", "COLLECTIVE STRATEGY TIME");
    expect_error("1KB;broadcast bcast:mst(gpu) 1us", "COLLECTIVE STRATEGY TIME");
    expect_error("1KB;bcast bcast:mst(gpu) 1us/2us", "each of the 1 sizes");
    expect_error("1KB;bcast bcast:mst(gpu) 1", "each of the 1 sizes");
    expect_error("1KB;bcast bcast:mst(gpu) 0", "takes 0");
}
