/* Prices on the links with the largest and the smallest numbers there may be, on meshes of all sizes, for up to 2^63 bytes:
 * all are numbers, and the planner finds one. */
#include "compose/algorithms/registry.h"
#include "compose/planner/planner.h"
#include "mesh/link_fields.h"

#include "support/large_meshes.h"
#include "support/places.h"
#include "support/random.h"

#include <math.h>
#include <string.h>

#ifndef ROUNDS
#define ROUNDS 150
#endif

static double drawn(mc_random_t *r, const mc_link_range_t *range)
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

static void draw_points(mc_random_t *r, mc_link_t *link)
{
    double bytes = 0;
    for (int32_t i = (int32_t)mc_random_below(r, MC_LINK_POINTS + 1); i > 0; i--) {
        mc_link_point_t point = {.bytes = mc_random_below(r, 2)
                                              ? nextafter(bytes, INFINITY)
                                              : fmax(bytes * 2, drawn(r, &mc_link_sizes))};
        if (point.bytes < mc_link_sizes.least || point.bytes > mc_link_sizes.most)
            continue;
        bytes = point.bytes;
        for (int32_t f = 0; f < MC_LINK_FIELDS; f++)
            *mc_link_in_point(&mc_link_fields[f], &point) =
                drawn(r, mc_link_range(&mc_link_fields[f]));
        link->point[link->n_points++] = point;
    }
}

static mc_link_t drawn_link(mc_random_t *r)
{
    mc_link_t link = {.burst = drawn(r, &mc_link_sizes),
                      .header = drawn(r, &mc_link_sizes),
                      .incast = drawn(r, &mc_link_shares),
                      .window = drawn(r, &mc_link_sizes),
                      .pieces = drawn(r, &mc_link_sizes),
                      .ports = drawn_ports(r),
                      .pulled = mc_random_below(r, 2)};
    for (int32_t f = 0; f < MC_LINK_FIELDS; f++)
        *mc_link_in(&mc_link_fields[f], &link) = drawn(r, mc_link_range(&mc_link_fields[f]));
    if (mc_random_below(r, 2))
        link.gap = link.alpha;
    if (mc_random_below(r, 3) == 0)
        draw_points(r, &link);
    return link;
}

static void draw_factors(mc_random_t *r, mc_links_t *links)
{
    for (int32_t a = 0; a < mc_n_algorithms; a++) {
        const mc_algorithm_t *const of = &mc_algorithms[a];
        const int32_t d = (int32_t)mc_random_below(r, (uint64_t)links->ndims);
        const mc_factor_key_t key = {d, of->collective, of->collective, of->name};
        for (int32_t k = 0; k < MC_LINK_POINTS; k++)
            mc_links_set_factor(links, &key, k, mc_random_below(r, 2) ? 0.001 : 65.535);
    }
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
            at.links.dim[d] = drawn_link(r);
        if (mc_random_below(r, 3) == 0)
            draw_factors(r, &at.links);
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
        at.links.dim[0] = drawn_link(r);
        mc_links_print(&at.links, &at.mesh, &text);
        cr_assert_eq(mc_links_parse(buffer, &at.mesh, &again), MESHCOLL_OK, "%s: %s", buffer,
                     meshcoll_last_error());
        for (int32_t f = 0; f < MC_LINK_FIELDS; f++)
            cr_expect_eq(mc_link_value(&mc_link_fields[f], &again.dim[0]),
                         mc_link_value(&mc_link_fields[f], &at.links.dim[0]), "%s", buffer);
    }
}

/* Links made by code are held to the same. */
Test(extremes, what_is_out_of_range_is_refused_by_the_planner)
{
    const double wrong[] = {-1, 1e305, 1e-300, NAN, INFINITY};
    for (size_t i = 0; i < MC_COUNT(wrong); i++)
        for (int32_t f = 0; f < MC_LINK_FIELDS + 5; f++) {
            place_t at = place_of("gpu=4", "uniform");
            mc_link_t *const link = &at.links.dim[0];
            double *const others[] = {&link->burst, &link->header, &link->incast, &link->window,
                                      &link->pieces};
            mc_ranked_t best;
            *(f < MC_LINK_FIELDS ? mc_link_in(&mc_link_fields[f], link)
                                 : others[f - MC_LINK_FIELDS]) = wrong[i];
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
