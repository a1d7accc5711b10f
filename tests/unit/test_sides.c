/* Strategies of two sides: priced by hand, picked where they pay, proved, and run on values. */
#include "compose/planner/ranking.h"
#include "compose/planner/two_sides.h"
#include "compose/price/sides.h"
#include "plan/verify/verify.h"

#include "support/one_side.h"
#include "support/places.h"
#include "support/plans.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double MiB = 1024 * 1024;

static const char ends_torus[] = "reduce_scatter:ring(x) allreduce:ring(y) allgather:ring(x) | "
                                 "reduce_scatter:ring(y) allreduce:ring(x) allgather:ring(y)";

/* 4 x 4, alpha 0, 1 ns a byte: a side takes 3/4 + 2 * 3/16 + 3/4 = 15/8 of its half, and never waits
 * for the other; the flat ring takes 2 * 15/16 of the whole. */
Test(sides, a_torus_halves_the_flat_ring)
{
    const place_t at = place_of("x=4,y=4", "x=alpha:0;beta:1GB/s;ports:all,y=alpha:0;beta:1GB/s");
    const double flat = seconds_of(&at, MESHCOLL_ALLREDUCE, "flat-ring", 1e9);
    cr_expect_float_eq(flat, 15 / 8.0, 1e-9);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_ALLREDUCE, ends_torus, 1e9), 15 / 16.0, 1e-9);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_ALLREDUCE, "torus", 1e9), 15 / 16.0, 1e-9);
    static const int extent[] = {2, 3, 8, 16};
    for (size_t i = 0; i < MC_COUNT(extent); i++) {
        char mesh[32];
        snprintf(mesh, sizeof mesh, "x=%d,y=%d", extent[i], extent[i]);
        const place_t square = place_of(mesh, "uniform");
        const double whole = seconds_of(&square, MESHCOLL_ALLREDUCE, "flat-ring", 1e10);
        const double half = seconds_of(&square, MESHCOLL_ALLREDUCE, "torus", 1e10);
        cr_expect_float_eq(half / whole, 0.5, 1e-3, "%s: %g", mesh, half / whole);
    }
}

/* x twice as slow as y, 1e6 bytes a segment. A: x 2 s, then y 1 s; B: y 1 s, then x 2 s. B's second
 * phase waits for A's first: A ends at 3, B at 2 + 2 = 4; x is busy for 4 of them with both. */
Test(sides, the_fill_waits_for_links_that_are_in_use)
{
    const place_t at = place_of("x=2,y=2", "x=alpha:0;beta:0.5MB/s;ports:all,y=alpha:0;beta:1MB/s");
    const char *two = "bcast:mst(x) bcast:mst(y) | bcast:mst(y) bcast:mst(x)";
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, two, 2e6), 4, 1e-9);
    const char *four = "bcast:mst(x) bcast:mst(y) | bcast:mst(y) bcast:mst(x) segments=6";
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, four, 6e6), 4 + 2 * 4, 1e-9);
    /* twice the same: x goes from one to the other, y follows each */
    const char *same = "bcast:mst(x) bcast:mst(y) | bcast:mst(x) bcast:mst(y)";
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, same, 2e6), 2 + 2 + 1, 1e-9);
    mc_strategy_t s;
    cr_assert_eq(mc_strategy_parse(four, MESHCOLL_BCAST, &at.mesh, &s), 0);
    const mc_pipeline_t pipeline = mc_sides_pipeline(&s, &at.mesh, &at.links, 0, 6e6);
    cr_expect_float_eq(pipeline.fill, 4, 1e-9);
    cr_expect_float_eq(pipeline.every, 4, 1e-9);
    cr_expect_eq(pipeline.busiest, 0);
}

/* A rank starts one message at a time: without bytes the two sides cost twice one side. */
Test(sides, messages_of_a_rank_do_not_overlap)
{
    const place_t at = place_of("x=4,y=4", "x=alpha:1ms;beta:1GB/s,y=alpha:1ms;beta:1GB/s");
    const double one = seconds_of(&at, MESHCOLL_ALLREDUCE, "hierarchical", 0);
    cr_expect_float_eq(one, 12e-3, 1e-9);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_ALLREDUCE, "torus", 0), 2 * one, 1e-9);
    mc_strategy_t s;
    cr_assert_eq(mc_strategy_parse("torus", MESHCOLL_ALLREDUCE, &at.mesh, &s), 0);
    cr_expect_eq(mc_sides_pipeline(&s, &at.mesh, &at.links, 0, 0).busiest, -1);
}

/* A ring over both has no round of y's own: x has them all. Of its 4 messages a round 2 go along y and hold up a core for
 * 1 ms each, 12 in 6 rounds; two sides have 12 each. */
Test(sides, messages_inside_a_merged_line_take_their_time)
{
    const place_t at =
        place_of("x=2,y=2", "x=alpha:0;beta:1GB/s;cpu:0,y=alpha:0;beta:1GB/s;cpu:1ms");
    const char *one = "reduce_scatter:ring(x*y) allgather:ring(x*y)";
    const char *two = "reduce_scatter:ring(x*y) allgather:ring(x*y) | "
                      "reduce_scatter:ring(x*y) allgather:ring(x*y)";
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_ALLREDUCE, one, 0), 12e-3, 1e-9);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_ALLREDUCE, two, 0), 24e-3, 1e-9);
}

static mc_ranked_t best_of(const place_t *at, meshcoll_collective_t collective, double n)
{
    mc_ranked_t best;
    const mc_planner_query_t query = {.bytes = n, .max_segments = 256};
    cr_assert_eq(mc_planner_best(collective, &at->mesh, &at->links, &query, &best), MESHCOLL_OK);
    cr_expect_eq(mc_strategy_check(&best.strategy, &at->mesh), MESHCOLL_OK);
    return best;
}

Test(sides, the_planner_takes_them_where_links_are_alike)
{
    const place_t alike = place_of("x=8,y=8", "uniform");
    const mc_ranked_t best = best_of(&alike, MESHCOLL_ALLREDUCE, 64 * MiB);
    const double flat = seconds_of(&alike, MESHCOLL_ALLREDUCE, "flat-ring", 64 * MiB);
    cr_expect_eq(mc_strategy_sides(&best.strategy), 2);
    cr_expect_float_eq(best.seconds / flat, 0.5, 0.01);
    cr_expect_eq(best.seconds,
                 mc_strategy_seconds(&best.strategy, &alike.mesh, &alike.links, 0, 64 * MiB));
    const mc_ranked_t small = best_of(&alike, MESHCOLL_ALLREDUCE, 64);
    cr_expect_eq(mc_strategy_sides(&small.strategy), 1);
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const mc_planner_query_t one = {.bytes = MiB, .max_segments = 64};
        const mc_ranked_t single = best_one_side(&alike, (meshcoll_collective_t)c, &one, 1);
        cr_expect_eq(mc_strategy_sides(&single.strategy), 1);
        cr_expect_leq(best_of(&alike, (meshcoll_collective_t)c, MiB).seconds, single.seconds);
    }
}

/* One NIC a box and fast links inside: whatever a side does, the network carries as much. */
Test(sides, the_planner_leaves_them_on_slow_networks)
{
    static const char *const mesh[] = {"box=8,gpu=8", "box=4,gpu=4", "rack=2,box=3,gpu=4"};
    for (size_t m = 0; m < MC_COUNT(mesh); m++) {
        const place_t lab = place_of(mesh[m], "lab");
        for (double n = 8; n < 1e9; n *= 32) {
            const mc_ranked_t best = best_of(&lab, MESHCOLL_ALLREDUCE, n);
            cr_expect_eq(mc_strategy_sides(&best.strategy), 1, "%s %g", mesh[m], n);
        }
    }
}

static void expect_proved(const mc_mesh_t *mesh, const mc_strategy_t *strategy, int32_t root)
{
    char text[MC_STRATEGY_TEXT];
    plans_t plans;
    mc_times_t times;
    mc_text_t printed = mc_text(text, sizeof text);
    mc_strategy_print(strategy, mesh, &printed);
    plans_make(&plans, mesh, strategy, root);
    const mc_world_t world = world_of(&plans);
    cr_expect_eq(mc_verify(&world, NULL, NULL), MESHCOLL_OK, "%s root %d: %s", text, root,
                 meshcoll_last_error());
    cr_expect_eq(mc_world_times(&world, &times), MESHCOLL_OK, "%s: %s", text,
                 meshcoll_last_error());
    mc_arena_free(&times.arena);
    plans_free(&plans);
}

/* Even and ragged meshes, every root, few segments and many. */
Test(sides, every_torus_is_proved)
{
    static const char *const text[] = {"x=1",     "x=3",         "x=4,y=4",
                                       "x=3,y=5", "x=2,y=1,z=3", "x=2,y=3,z=2"};
    for (size_t m = 0; m < MC_COUNT(text); m++)
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
            const meshcoll_collective_t collective = (meshcoll_collective_t)c;
            mc_mesh_t mesh;
            mc_strategy_t s;
            if (c == MESHCOLL_ALLTOALL) /* has one side */
                continue;
            cr_assert_eq(mc_mesh_parse(text[m], &mesh), 0);
            cr_assert_eq(mc_strategy_named("torus", collective, &mesh, &s), 0);
            for (int32_t root = 0; root < (mc_moves[c].rooted ? mesh.size : 1); root++)
                for (s.segments = 2; s.segments <= 8; s.segments *= 2)
                    expect_proved(&mesh, &s, root);
        }
}

/* Whatever the planner pairs. */
Test(sides, all_candidates_are_proved)
{
    static const char *const text[] = {"x=3,y=5", "x=2,y=3,z=2", "a=2,x=1,b=2,c=2,d=2"};
    for (size_t m = 0; m < MC_COUNT(text); m++)
        for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
            const place_t at = place_of(text[m], "uniform");
            const mc_planner_query_t query = {.root = 5, .bytes = 1e5, .max_segments = 8};
            const mc_ranked_t nothing = {.seconds = INFINITY, .strategy.segments = 1};
            mc_ranking_t ranking = {0};
            mc_priced_t graph;
            const meshcoll_collective_t collective = (meshcoll_collective_t)c;
            const mc_planner_query_t from = {.root = mc_moves[c].rooted ? 5 : 0};
            cr_assert_eq(mc_priced_init(&graph, collective, &at.mesh, &at.links, &from),
                         MESHCOLL_OK);
            cr_assert_eq(mc_ranking_add(&ranking, &nothing), MESHCOLL_OK);
            cr_assert_eq(mc_sides_search(&graph, &query, &ranking), MESHCOLL_OK);
            mc_priced_free(&graph);
            cr_expect(c == MESHCOLL_ALLTOALL ? ranking.n == 1 : ranking.n > 1);
            for (uint32_t i = 1; i < ranking.n; i++) {
                const mc_ranked_t *const pair = &ranking.list[i];
                cr_expect_eq(mc_strategy_sides(&pair->strategy), 2);
                cr_expect_eq(pair->seconds,
                             mc_strategy_seconds(&pair->strategy, &at.mesh, &at.links, 5, 1e5));
                if (i % 7 == 0)
                    expect_proved(&at.mesh, &pair->strategy, 5);
            }
            free(ranking.list);
        }
}

/* Rings side by side: a turn (a send, a receive) of one side, then one of the other, so that window
 * and slots serve both. */
Test(sides, sides_in_step_alternate)
{
    plans_t plans;
    const case_t c = {"x=4,y=4", MESHCOLL_ALLREDUCE, 0, "torus"};
    plans_of(&plans, &c);
    const mc_plan_t *const plan = plans.plan[5];
    for (uint32_t i = 0; i < 12; i++)
        cr_expect_eq(plan->step[i].first / plan->layout.per_segment, i / 2 % 2, "%u", i);
    plans_free(&plans);
}
