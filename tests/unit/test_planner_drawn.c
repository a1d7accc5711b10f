/* The planner on links drawn at random, with all that links can have, against the whole enumeration, and against its
 * own other way of searching. */
#include "compose/algorithms/registry.h"
#include "compose/planner/planner.h"

#include "support/one_side.h"
#include "support/places.h"
#include "support/random.h"

#include <math.h>
#include <stdlib.h>

static double drawn(mc_random_t *r, double least, double most)
{
    const double part = (double)mc_random_below(r, 1001) / 1000;
    return least * pow(most / least, part);
}

static void draw_link(mc_random_t *r, mc_links_t *links, int32_t d)
{
    static const double gaps[] = {0, 0.2, 1};
    mc_link_t link = {.alpha = drawn(r, 1e-7, 1e-4),
                      .beta = drawn(r, 1e-11, 1e-7),
                      .gamma = drawn(r, 1e-11, 1e-9),
                      .ports =
                          mc_random_below(r, 3) ? 1 + (int32_t)mc_random_below(r, 2) : MC_PORTS_ALL,
                      .pulled = mc_random_below(r, 3) == 0};
    link.gap = link.alpha * gaps[mc_random_below(r, MC_COUNT(gaps))];
    links->dim[d] = link;
    links->correction[d] =
        (mc_correction_t){.burst = mc_random_below(r, 3) ? 0 : drawn(r, 1e3, 1e6),
                          .cpu = mc_random_below(r, 2) ? drawn(r, 1e-8, 1e-5) : 0};
}

static place_t drawn_place(mc_random_t *r, const char *mesh)
{
    place_t at = place_of(mesh, "uniform");
    for (int32_t d = 0; d < at.mesh.ndims; d++)
        draw_link(r, &at.links, d);
    if (at.mesh.ndims > 1 && mc_random_below(r, 3) == 0)
        mc_links_share_wire(&at.links, 1);
    cr_assert_eq(mc_links_check(&at.links, &at.mesh), MESHCOLL_OK, "%s", meshcoll_last_error());
    return at;
}

typedef struct {
    const place_t *at;
    const mc_planner_query_t *query;
    mc_ranked_t best;
} scan_t;

static bool keep_cheapest(void *context, const mc_strategy_t *strategy)
{
    scan_t *const scan = context;
    mc_strategy_t cut = *strategy;
    for (cut.segments = 1; cut.segments <= scan->query->max_segments; cut.segments *= 4) {
        const double seconds = mc_strategy_seconds(&cut, &scan->at->mesh, &scan->at->links,
                                                   scan->query->root, scan->query->bytes);
        if (seconds < scan->best.seconds)
            scan->best = (mc_ranked_t){cut, seconds};
    }
    return true;
}

/* Nothing that is there is cheaper, and what is named costs what it says. */
static void expect_cheapest(const place_t *at, meshcoll_collective_t which, double bytes,
                            const char *mesh, uint64_t k)
{
    const mc_planner_query_t query = {.bytes = bytes, .max_segments = 16};
    scan_t scan = {.at = at, .query = &query, .best.seconds = INFINITY};
    const mc_ranked_t best = best_one_side(at, which, &query, 1);
    cr_assert_eq(mc_strategy_each(which, &at->mesh, MC_PATHS_ALL, keep_cheapest, &scan), 0);
    cr_expect_leq(best.seconds, scan.best.seconds, "%s %s %g, %d: %.17g", mesh,
                  meshcoll_collective_name(which), bytes, (int)k, scan.best.seconds);
    cr_expect_eq(best.seconds, mc_strategy_seconds(&best.strategy, &at->mesh, &at->links, 0, bytes),
                 "%s %s %g, %d", mesh, meshcoll_collective_name(which), bytes, (int)k);
}

Test(planner_drawn, nothing_is_cheaper_than_the_best)
{
    static const char *const mesh[] = {"x=3,y=4", "box=4,gpu=2", "x=5,y=2", "box=3+1", "x=7"};
    enum { CASES = 60 };
    for (uint64_t k = 0; k < CASES; k++) {
        mc_random_t r = mc_random_of(2026, k);
        const char *const on = mesh[mc_random_below(&r, MC_COUNT(mesh))];
        const place_t at = drawn_place(&r, on);
        const meshcoll_collective_t which =
            (meshcoll_collective_t)mc_random_below(&r, MESHCOLL_COLLECTIVES);
        if (at.mesh.ragged && which == MESHCOLL_ALLREDUCE)
            continue; /* tens of thousands */
        expect_cheapest(&at, which, drawn(&r, 8, 1e8), on, k);
    }
}

/* A wire of two dimensions, by one of which the receiver copies: its bytes are then the ranks' own time too. */
Test(planner_drawn, nothing_is_cheaper_where_a_wire_is_pulled_by_one_dimension_only)
{
    static const char *const mesh[] = {"x=3,y=4", "box=4,gpu=2"};
    enum { CASES = 40 };
    for (uint64_t k = 0; k < CASES; k++) {
        mc_random_t r = mc_random_of(279, k);
        const char *const on = mesh[mc_random_below(&r, MC_COUNT(mesh))];
        place_t at = place_of(on, "uniform");
        for (int32_t d = 0; d < at.mesh.ndims; d++) {
            draw_link(&r, &at.links, d);
            at.links.dim[d].gap = at.links.dim[d].alpha * 0.2;
            at.links.dim[d].pulled = d == (int32_t)(k % 2);
        }
        mc_links_share_wire(&at.links, 1);
        cr_assert_eq(mc_links_check(&at.links, &at.mesh), MESHCOLL_OK);
        const meshcoll_collective_t which =
            (meshcoll_collective_t)mc_random_below(&r, MESHCOLL_COLLECTIVES);
        expect_cheapest(&at, which, drawn(&r, 1e3, 1e7), on, k);
    }
}

/* The search for several strategies and the search for one find the same cheapest one. */
static void expect_agreement(const place_t *at, meshcoll_collective_t which, double bytes,
                             const char *mesh, uint64_t k)
{
    const mc_planner_query_t query = {.bytes = bytes, .max_segments = 64};
    const mc_ranked_t best = best_one_side(at, which, &query, 1);
    const double first = best_one_side(at, which, &query, 2).seconds;
    cr_expect_eq(best.seconds, first, "%s %s %g, %d: %g, not %g", mesh,
                 meshcoll_collective_name(which), bytes, (int)k, best.seconds, first);
}

Test(planner_drawn, two_ways_to_search_agree)
{
    static const char *const mesh[] = {"x=4,y=3,z=5", "x=32,y=32,z=32", "rack=2,box=2,gpu=4",
                                       "box=4+3+1", "a=2,b=3,c=2,d=2"};
    static const meshcoll_collective_t some[] = {MESHCOLL_BCAST, MESHCOLL_REDUCE,
                                                 MESHCOLL_ALLGATHER, MESHCOLL_SCATTER};
    enum { CASES = 60 };
    for (uint64_t k = 0; k < CASES; k++) {
        mc_random_t r = mc_random_of(4711, k);
        const char *const on = mesh[mc_random_below(&r, MC_COUNT(mesh))];
        const place_t at = drawn_place(&r, on);
        const meshcoll_collective_t which = some[mc_random_below(&r, MC_COUNT(some))];
        expect_agreement(&at, which, drawn(&r, 8, 1e8), on, k);
    }
}

/* The most paths there are. */
Test(planner_drawn, two_ways_to_search_an_allreduce_agree)
{
    static const char *const mesh[] = {"x=4,y=3,z=5", "x=32,y=32,z=32", "rack=2,box=2,gpu=4"};
    enum { CASES = 12 };
    for (uint64_t k = 0; k < CASES; k++) {
        mc_random_t r = mc_random_of(1147, k);
        const char *const on = mesh[mc_random_below(&r, MC_COUNT(mesh))];
        const place_t at = drawn_place(&r, on);
        expect_agreement(&at, MESHCOLL_ALLREDUCE, k ? drawn(&r, 8, 1e8) : 0, on, k);
    }
}

/* Where dimensions are as fast as each other, or each twice as fast as the one outside of it, the search is long. */
Test(planner_drawn, two_ways_to_search_agree_where_it_takes_long)
{
    static const char *const mesh[] = {"x=8,y=8,z=8", "a=2,b=4,c=3,d=2"};
    static const double bytes[] = {4096, 1e6, 1e8};
    static const meshcoll_collective_t some[] = {MESHCOLL_ALLREDUCE, MESHCOLL_BCAST};
    for (size_t k = 0; k < MC_COUNT(mesh) * MC_COUNT(bytes) * 2; k++) {
        const size_t m = k % MC_COUNT(mesh), twice = k / (MC_COUNT(mesh) * MC_COUNT(bytes));
        place_t at = place_of(mesh[m], "uniform");
        for (int32_t d = 0; d < at.mesh.ndims; d++) {
            at.links.dim[d].gap = 0.3e-6;
            at.links.dim[d].beta *= twice ? ldexp(1, -d) : 1;
        }
        expect_agreement(&at, some[m], bytes[k / MC_COUNT(mesh) % MC_COUNT(bytes)], mesh[m], k);
    }
}
