/* Prices on the links with the largest and the smallest numbers there may be, on meshes of all sizes, for up to 2^63 bytes:
 * all are numbers, and the planner finds one. */
#include "compose/algorithms/registry.h"
#include "compose/planner/planner.h"
#include "mesh/link/link_text.h"

#include "support/large_meshes.h"
#include "support/places.h"
#include "support/random.h"

#include <math.h>
#include <string.h>

#ifndef ROUNDS
#define ROUNDS 150
#endif

static double drawn(mc_random_t *r, const mc_link_kind_t *range)
{
    switch (mc_random_below(r, 5)) {
    case 0:
        return 0;
    case 1:
        return range->least;
    case 2:
        return range->most;
    default:
        return range->least *
               pow(range->most / range->least, (double)mc_random_below(r, 1000) / 1000);
    }
}

static int32_t drawn_ports(mc_random_t *r)
{
    static const int32_t ports[] = {1, 2, 3, 2147483629, MC_PORTS_ALL};
    return ports[mc_random_below(r, MC_COUNT(ports))];
}

static void draw_link(mc_random_t *r, mc_links_t *links, int32_t d)
{
    links->dim[d] = (mc_link_t){.ports = drawn_ports(r), .pulled = mc_random_below(r, 2)};
    for (int32_t f = 0; f < MC_LINK_FIELDS; f++)
        *mc_link_number(&mc_link_fields[f], links, d) = drawn(r, mc_link_fields[f].kind);
    if (mc_random_below(r, 2))
        links->dim[d].gap = links->dim[d].alpha;
}

static double drawn_bytes(mc_random_t *r)
{
    static const double sizes[] = {0, 1, 3, 1e6, 0x1p63, 0x1p62};
    return sizes[mc_random_below(r, MC_COUNT(sizes))];
}

static void expect_price(const place_t *at, meshcoll_collective_t collective,
                         const mc_planner_query_t *query, const char *mesh, int round)
{
    mc_ranked_t best = {.seconds = NAN};
    cr_assert_eq(mc_planner_best(collective, &at->mesh, &at->links, query, &best), MESHCOLL_OK,
                 "%s: %s", mesh, meshcoll_last_error());
    const double seconds =
        mc_strategy_seconds(&best.strategy, &at->mesh, &at->links, query->root, query->bytes);
    const double bound = mc_lower_bound(collective, &at->mesh, &at->links, query->bytes);
    cr_assert(isfinite(best.seconds) && isfinite(seconds) && seconds >= 0 && isfinite(bound),
              "%s, round %d, %s of %g bytes: %g, %g, bound %g", mesh, round,
              meshcoll_collective_name(collective), query->bytes, best.seconds, seconds, bound);
}

Test(extremes, every_price_is_a_number)
{
    for (int round = 0; round < ROUNDS; round++) {
        mc_random_t random = mc_random_of(2211, (uint64_t)round), *const r = &random;
        const char *const mesh = meshes[mc_random_below(r, MC_COUNT(meshes))];
        const meshcoll_collective_t collective =
            (meshcoll_collective_t)mc_random_below(r, MESHCOLL_COLLECTIVES);
        place_t at = place_of(mesh, "uniform");
        for (int32_t d = 0; d < at.mesh.ndims; d++)
            draw_link(r, &at.links, d);
        if (at.mesh.ndims > 1 && mc_random_below(r, 3) == 0)
            mc_links_share_wire(&at.links, 1);
        cr_assert_eq(mc_links_check(&at.links, &at.mesh), MESHCOLL_OK, "%s", meshcoll_last_error());
        for (int32_t d = 0; d < at.mesh.ndims; d++)
            cr_assert(isfinite(mc_links_window(&at.links, &at.mesh, d)));
        const mc_planner_query_t query = {
            .root = mc_moves[collective].rooted
                        ? (int32_t)mc_random_below(r, (uint64_t)at.mesh.size)
                        : 0,
            .bytes = drawn_bytes(r),
            .max_segments = MC_MOST_SEGMENTS};
        expect_price(&at, collective, &query, mesh, round);
    }
}

/* What text says comes back from what is printed, to the last bit. */
Test(extremes, links_are_printed_and_read_again)
{
    for (int round = 0; round < ROUNDS; round++) {
        mc_random_t random = mc_random_of(2212, (uint64_t)round), *const r = &random;
        char buffer[MC_LINKS_TEXT];
        mc_text_t text = mc_text(buffer, sizeof buffer);
        place_t at = place_of("a=3", "uniform");
        mc_links_t again;
        draw_link(r, &at.links, 0);
        mc_links_print(&at.links, &at.mesh, &text);
        cr_assert_eq(mc_links_parse(buffer, &at.mesh, &again), MESHCOLL_OK, "%s: %s", buffer,
                     meshcoll_last_error());
        for (int32_t f = 0; f < MC_LINK_FIELDS; f++)
            cr_expect_eq(mc_link_value(&mc_link_fields[f], &again, 0),
                         mc_link_value(&mc_link_fields[f], &at.links, 0), "%s", buffer);
    }
}

/* Links made by code are held to the same. */
Test(extremes, what_is_out_of_range_is_refused_by_the_planner)
{
    const double wrong[] = {-1, 1e305, 1e-300, NAN, INFINITY};
    for (size_t i = 0; i < MC_COUNT(wrong); i++)
        for (int32_t f = 0; f < MC_LINK_FIELDS; f++) {
            place_t at = place_of("gpu=4", "uniform");
            mc_ranked_t best;
            *mc_link_number(&mc_link_fields[f], &at.links, 0) = wrong[i];
            cr_expect_eq(mc_planner_best(MESHCOLL_BCAST, &at.mesh, &at.links,
                                         &(mc_planner_query_t){.bytes = 8, .max_segments = 1},
                                         &best),
                         MESHCOLL_ERR_INVALID_ARG);
            cr_expect(strstr(meshcoll_last_error(), "of dimension gpu must be 0, or from"), "%s",
                      meshcoll_last_error());
        }
}

Test(extremes, no_more_bytes_than_there_are)
{
    const place_t at = place_of("gpu=4", "uniform");
    mc_planner_query_t query = {.bytes = INFINITY, .max_segments = 1};
    mc_ranked_t best;
    cr_expect_eq(mc_planner_best(MESHCOLL_BCAST, &at.mesh, &at.links, &query, &best),
                 MESHCOLL_ERR_INVALID_ARG);
}
