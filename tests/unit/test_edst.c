/* Two edge-disjoint spanning trees: whose links they use, what they cost, and where the planner takes them. */
#include "compose/algorithms/registry.h"
#include "compose/planner/planner.h"
#include "plan/verify/verify.h"

#include "support/places.h"
#include "support/plans.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const double MiB = 1024 * 1024;
static const meshcoll_collective_t rooted[] = {MESHCOLL_BCAST, MESHCOLL_REDUCE};
static const char *const text_of[] = {"bcast:edst(x*y) segments=2", "reduce:edst(x*y) segments=2"};

/* Steps to the right along x (0) or y (1) that lead from `a` to `b`; -1: there are none. */
static int dimension_of(const mc_mesh_t *mesh, int32_t a, int32_t b)
{
    int32_t from[MC_MAX_DIMS], to[MC_MAX_DIMS];
    mc_mesh_coords(mesh, a, from);
    mc_mesh_coords(mesh, b, to);
    for (int d = 0; d < 2; d++)
        if ((from[d] + 1) % mesh->dim[d].extent == to[d] && from[1 - d] == to[1 - d])
            return d;
    return -1;
}

/* Of each segment a rank sends one message at most to its neighbour in the row, one in the column, and gets no more. */
static void expect_disjoint(const mc_mesh_t *mesh, const plans_t *plans, const char *what)
{
    for (int32_t r = 0; r < plans->n; r++) {
        uint32_t sent[2] = {0}, got[2] = {0};
        const mc_plan_t *const plan = plans->plan[r];
        for (uint32_t i = 0; i < plan->n_steps; i++) {
            const mc_step_t *const step = &plan->step[i];
            const bool sends = step->op == MC_OP_SEND;
            if (!sends && !mc_op_receives((mc_op_t)step->op))
                continue;
            const int d =
                sends ? dimension_of(mesh, r, step->peer) : dimension_of(mesh, step->peer, r);
            cr_assert_geq(d, 0, "%s: %d and %d are no neighbours", what, r, step->peer);
            (sends ? sent : got)[d]++;
        }
        for (int d = 0; d < 2; d++) {
            cr_expect_leq(sent[d], plan->layout.segments, "%s: rank %d, %d", what, r, d);
            cr_expect_leq(got[d], plan->layout.segments, "%s: rank %d, %d", what, r, d);
        }
    }
}

Test(edst, trees_share_no_link_and_are_proved)
{
    static const char *const text[] = {"x=2,y=2", "x=4,y=4", "x=3,y=5", "x=5,y=2", "x=2,y=7"};
    for (size_t m = 0; m < MC_COUNT(text); m++)
        for (int c = 0; c < 2; c++) {
            mc_mesh_t mesh;
            mc_strategy_t s;
            cr_assert_eq(mc_mesh_parse(text[m], &mesh), 0);
            cr_assert_eq(mc_strategy_parse(text_of[c], rooted[c], &mesh, &s), 0);
            for (int32_t root = 0; root < mesh.size; root++) {
                plans_t plans;
                plans_make(&plans, &mesh, &s, root);
                const mc_world_t world = world_of(&plans);
                cr_expect_eq(mc_verify(&world, NULL, NULL), MESHCOLL_OK, "%s root %d: %s", text[m],
                             root, meshcoll_last_error());
                if (mesh.dim[0].extent > 2 && mesh.dim[1].extent > 2)
                    expect_disjoint(&mesh, &plans, text[m]);
                plans_free(&plans);
            }
        }
}

/* Further dimensions count as columns; rows of one rank each are a chain. */
Test(edst, other_lines_are_proved)
{
    static const char *const text[][2] = {{"x=2,y=3,z=2", "bcast:edst(x*y*z)"},
                                          {"x=3,y=1,z=4", "bcast:edst(x*y*z)"},
                                          {"x=1,y=8", "bcast:edst(x*y)"},
                                          {"x=7", "bcast:edst(x)"},
                                          {"x=2,y=3,z=2", "bcast:edst(x*y) bcast:edst(z)"},
                                          {"box=3+2+2", "bcast:edst(box*gpu*fold)"}};
    for (size_t i = 0; i < MC_COUNT(text); i++)
        for (int32_t root = 0; root < 7; root += 3) {
            plans_t plans;
            const case_t c = {text[i][0], MESHCOLL_BCAST, root, text[i][1]};
            plans_of(&plans, &c);
            const mc_world_t world = world_of(&plans);
            cr_expect_eq(mc_verify(&world, NULL, NULL), MESHCOLL_OK, "%s: %s", text[i][1],
                         meshcoll_last_error());
            plans_free(&plans);
        }
}

/* By hand: the last rank hears after (4-1) + (4-1) + 1 hops of half a segment, the others follow one each. */
Test(edst, costs_half_the_vector_and_the_way_of_the_first)
{
    const place_t at =
        place_of("x=4,y=4",
                 "x=alpha:0;beta:1GB/s;ports:all;wire:own,y=alpha:0;beta:1GB/s;ports:all;wire:own");
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, "bcast:edst(x*y)", 1e9), 7 * 0.5, 1e-9);
    cr_expect_float_eq(seconds_of(&at, MESHCOLL_BCAST, "bcast:edst(x*y) segments=100", 1e9),
                       (7 + 99) * 0.005, 1e-9);
    /* one NIC for all of a row: what each of its four ranks sends down */
    const place_t box = place_of("x=4,y=4", "x=alpha:0;beta:1GB/s;ports:1,y=alpha:0;beta:1GB/s");
    cr_expect_float_eq(seconds_of(&box, MESHCOLL_BCAST, "bcast:edst(x*y)", 1e9), 3 * 0.5 + 4 * 2,
                       1e-9);
    /* along one dimension it is the chain */
    cr_expect_eq(seconds_of(&at, MESHCOLL_BCAST, "bcast:edst(x) bcast:edst(y)", 1e9),
                 seconds_of(&at, MESHCOLL_BCAST, "bcast:chain(x) bcast:chain(y)", 1e9));
}

static mc_ranked_t best_of(const place_t *at, meshcoll_collective_t collective, bool in_order)
{
    mc_ranked_t best;
    const mc_planner_query_t query = {.bytes = 8 * MiB, .max_segments = 256, .in_order = in_order};
    cr_assert_eq(mc_planner_best(collective, &at->mesh, &at->links, &query, &best), MESHCOLL_OK);
    return best;
}

static bool has_edst(const mc_ranked_t *best)
{
    const mc_strategy_t *const s = &best->strategy;
    for (int32_t i = 0; i < s->n_phases; i++)
        if (strcmp(mc_algorithms[s->phase[i].algorithm].name, "edst") == 0)
            return true;
    return false;
}

static const char slow_torus[] = "x=alpha:20us;beta:12.5MB/s;ports:all;wire:own,"
                                 "y=alpha:20us;beta:12.5MB/s;ports:all;wire:own";

/* A wire for each dimension: within 5 % of what both can carry, where paths of lines take 1.9 times that. */
Test(edst, the_planner_takes_them_on_a_torus)
{
    const place_t torus = place_of("x=4,y=4", slow_torus);
    const place_t boxes = place_of("x=4,y=4", "lab");
    for (int c = 0; c < 2; c++) {
        const mc_ranked_t best = best_of(&torus, rooted[c], false);
        const double bound = mc_lower_bound(rooted[c], &torus.mesh, &torus.links, 8 * MiB);
        cr_expect(has_edst(&best));
        cr_expect_lt(best.seconds, 1.05 * bound);
        const mc_ranked_t shared = best_of(&boxes, rooted[c], false);
        cr_expect_not(has_edst(&shared));
    }
    const mc_ranked_t ordered = best_of(&torus, MESHCOLL_REDUCE, true);
    cr_expect_not(has_edst(&ordered));
}
