#include "compose/algorithms/registry.h"
#include "compose/strategy/paths.h"
#include "compose/strategy/strategy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static mc_mesh_t mesh_of(const char *text)
{
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse(text, &mesh), 0);
    return mesh;
}

static void expect_text(const char *mesh_text, meshcoll_collective_t collective, const char *text,
                        const char *expected)
{
    char buffer[MC_STRATEGY_TEXT];
    const mc_mesh_t mesh = mesh_of(mesh_text);
    mc_strategy_t strategy, again;
    cr_assert_eq(mc_strategy_parse(text, collective, &mesh, &strategy), 0, "%s",
                 meshcoll_last_error());
    mc_text_t printed = mc_text(buffer, sizeof buffer);
    mc_strategy_print(&strategy, &mesh, &printed);
    cr_assert_str_eq(buffer, expected);
    cr_assert_eq(mc_strategy_parse(buffer, collective, &mesh, &again), 0);
    cr_assert(mc_strategy_equal(&strategy, &again));
}

Test(strategy, text_round_trips)
{
    expect_text("box=4,gpu=8", MESHCOLL_BCAST,
                "  scatter:mst(box)   bcast:mst(gpu) allgather:ring(box) segments=8 ",
                "scatter:mst(box) bcast:mst(gpu) allgather:ring(box) segments=8");
    expect_text("box=4,gpu=8", MESHCOLL_BCAST, "segments=1 bcast:mst(box*gpu)",
                "bcast:mst(box*gpu)");
    expect_text("box=4,gpu=8", MESHCOLL_ALLREDUCE, "allreduce:ring", "allreduce:ring(box*gpu)");
    expect_text("a=2,b=3,c=4,d=5", MESHCOLL_ALLREDUCE,
                "reduce_scatter:ring(c*d) allreduce:fullmesh(a*b) allgather:fullmesh(c) "
                "allgather:ring(d)",
                "reduce_scatter:ring(c*d) allreduce:fullmesh(a*b) allgather:fullmesh(c) "
                "allgather:ring(d)");
}

/* Two sides: the bar may touch its neighbours, and either side may be a name. */
Test(strategy, text_of_two_sides_round_trips)
{
    static const char torus[] = "reduce_scatter:ring(x) allreduce:ring(y) allgather:ring(x) | "
                                "reduce_scatter:ring(y) allreduce:ring(x) allgather:ring(y)";
    char text[MC_STRATEGY_TEXT];
    expect_text("x=4,y=4", MESHCOLL_ALLREDUCE, torus, torus);
    snprintf(text, sizeof text, "segments=2 %s", torus);
    expect_text("x=4,y=4", MESHCOLL_ALLREDUCE, text, torus);
    snprintf(text, sizeof text, "%s segments=6", torus);
    expect_text("x=4,y=4", MESHCOLL_ALLREDUCE, text, text);
    expect_text("box=4,gpu=8", MESHCOLL_BCAST, "option1|bcast:chain(box*gpu)",
                "bcast:mst(box) bcast:mst(gpu) | bcast:chain(box*gpu)");
    expect_text("box=4,gpu=8", MESHCOLL_BCAST, "option2 | option2-inner segments=4",
                "scatter:mst(box) bcast:mst(gpu) allgather:ring(box) | scatter:mst(gpu) "
                "bcast:mst(box) allgather:ring(gpu) segments=4");
    expect_text("x=2,y=3,z=4", MESHCOLL_ALLGATHER, "torus",
                "allgather:ring(x) allgather:ring(y) allgather:ring(z) | allgather:ring(z) "
                "allgather:ring(y) allgather:ring(x)");
}

Test(strategy, sides_make_a_difference)
{
    const mc_mesh_t mesh = mesh_of("x=2,y=3");
    mc_strategy_t one, two;
    cr_assert_eq(mc_strategy_parse("option1 | option3", MESHCOLL_BCAST, &mesh, &one), 0);
    two = one;
    cr_assert(mc_strategy_equal(&one, &two));
    two.second = 1;
    cr_assert_not(mc_strategy_equal(&one, &two));
    cr_assert_eq(mc_strategy_check(&two, &mesh), MESHCOLL_ERR_STRATEGY);
    two.second = 7;
    cr_assert_eq(mc_strategy_check(&two, &mesh), MESHCOLL_ERR_STRATEGY);
    two = one;
    two.segments = 3;
    cr_assert_eq(mc_strategy_check(&two, &mesh), MESHCOLL_ERR_STRATEGY);
}

/* REFERENCE §3, and its continuation to three dimensions. */
Test(strategy, named_entries_are_the_textbooks_options)
{
    expect_text("box=4,gpu=8", MESHCOLL_BCAST, "option1", "bcast:mst(box) bcast:mst(gpu)");
    expect_text("box=4,gpu=8", MESHCOLL_BCAST, "option2",
                "scatter:mst(box) bcast:mst(gpu) allgather:ring(box)");
    expect_text("box=4,gpu=8", MESHCOLL_BCAST, "option3 segments=4",
                "scatter:mst(box) scatter:mst(gpu) allgather:ring(gpu) allgather:ring(box) "
                "segments=4");
    expect_text("box=4,gpu=8", MESHCOLL_BCAST, "option2-inner",
                "scatter:mst(gpu) bcast:mst(box) allgather:ring(gpu)");
    expect_text("box=4,gpu=8", MESHCOLL_BCAST, "option3-inner",
                "scatter:mst(gpu) scatter:mst(box) allgather:ring(box) allgather:ring(gpu)");
    expect_text("x=2,y=3,z=4", MESHCOLL_BCAST, "option2",
                "scatter:mst(x) scatter:mst(y) bcast:mst(z) allgather:ring(y) allgather:ring(x)");
    expect_text("x=2,y=3,z=4", MESHCOLL_BCAST, "option3",
                "scatter:mst(x) scatter:mst(y) scatter:mst(z) allgather:ring(z) allgather:ring(y) "
                "allgather:ring(x)");
    expect_text("x=2,y=3,z=4", MESHCOLL_BCAST, "flat-mst", "bcast:mst(x*y*z)");
}

Test(strategy, every_named_entry_fits_every_mesh)
{
    static const char *const meshes[] = {"x=1",     "x=7",         "box=4,gpu=4",
                                         "a=1,b=3", "x=2,y=3,z=4", "a=2,b=1,c=2,d=3,e=2,f=1"};
    cr_assert_gt(mc_named_count(), 20);
    for (size_t m = 0; m < MC_COUNT(meshes); m++) {
        const mc_mesh_t mesh = mesh_of(meshes[m]);
        for (int32_t i = 0; i < mc_named_count(); i++) {
            const mc_named_t *const named = mc_named_at(i);
            mc_strategy_t s;
            cr_assert_eq(mc_strategy_named(named->name, named->collective, &mesh, &s), 0);
            cr_assert_eq(mc_strategy_check(&s, &mesh), 0, "%s on %s: %s", named->name, meshes[m],
                         meshcoll_last_error());
        }
    }
}

static void expect_refusal(const char *text, meshcoll_collective_t collective, const char *reason)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=8");
    mc_strategy_t strategy = {.n_phases = -3};
    cr_assert_eq(mc_strategy_parse(text, collective, &mesh, &strategy), MESHCOLL_ERR_STRATEGY, "%s",
                 text);
    cr_assert_eq(strategy.n_phases, -3, "the output is set on failure");
    cr_assert(strstr(meshcoll_last_error(), reason), "%s: %s", text, meshcoll_last_error());
}

Test(strategy, wrong_texts_are_refused_with_the_reason)
{
    expect_refusal("", MESHCOLL_BCAST, "at least one phase");
    expect_refusal("option9", MESHCOLL_BCAST, "option1, option2, option3");
    expect_refusal("bcast:mst(box", MESHCOLL_BCAST, "collective:algorithm(dimension)");
    expect_refusal("(box):bcast", MESHCOLL_BCAST, "collective:algorithm(dimension)");
    expect_refusal("bcast:mst(node)", MESHCOLL_BCAST, "not a dimension of mesh box=4,gpu=8");
    expect_refusal("bcast:mst(gpu*box)", MESHCOLL_BCAST, "are not adjacent, outer first, in");
    expect_refusal("bcast:ring(box)", MESHCOLL_BCAST, "it has mst, chain, star, edst, long");
    expect_refusal("cast:mst(box)", MESHCOLL_BCAST, "names no collective");
    expect_refusal("bcast:mst(box)", MESHCOLL_BCAST,
                   "end with gpu in state replica, but it is root");
    expect_refusal("bcast:mst(box) bcast:mst(box) bcast:mst(gpu)", MESHCOLL_BCAST,
                   "phase 2, bcast:mst(box), starts from root, but box is replica");
    expect_refusal("scatter:mst(box*gpu) gather:mst(box) bcast:mst(box)", MESHCOLL_BCAST,
                   "takes box back to root");
    expect_refusal("bcast:mst(box*gpu) segments=0", MESHCOLL_BCAST, "from 1 to 65535");
    expect_refusal("bcast:mst(box*gpu) segments=x", MESHCOLL_BCAST, "from 1 to 65535");
    expect_refusal("option1 bcast:mst(box)", MESHCOLL_BCAST, "follows a named strategy");
    expect_refusal("allgather:ring(box*gpu)", MESHCOLL_ALLREDUCE, "box is partial there");
    expect_refusal("option1 | bcast:mst(box)", MESHCOLL_BCAST,
                   "on the second side, bcast must end with gpu in state replica");
    expect_refusal("bcast:mst(box) | option1", MESHCOLL_BCAST,
                   "on the first side, bcast must end with gpu in state replica");
    expect_refusal("option1 | bcast:mst(box) bcast:mst(box)", MESHCOLL_BCAST,
                   "on the second side, phase 2, bcast:mst(box), starts from root");
    expect_refusal("| option1", MESHCOLL_BCAST, "the first side needs at least one phase");
    expect_refusal("option1 |", MESHCOLL_BCAST, "a side of a strategy needs at least one phase");
    expect_refusal("option1 | option2 | option3", MESHCOLL_BCAST, "write '|' once");
    expect_refusal("torus | option1", MESHCOLL_BCAST, "not with a named strategy that has two");
    expect_refusal("option1 | torus", MESHCOLL_BCAST, "not with a named strategy that has two");
    expect_refusal("option1 | option3 segments=3", MESHCOLL_BCAST, "an even number");
    expect_refusal("torus segments=1", MESHCOLL_BCAST, "segments=2 at least; got 1");
}

Test(strategy, the_phase_that_does_not_keep_the_order_is_named_on_its_side)
{
    mc_mesh_t mesh;
    mc_strategy_t s;
    cr_assert_eq(mc_mesh_parse("box=4,gpu=8", &mesh), MESHCOLL_OK);
    cr_assert_eq(
        mc_strategy_parse("reduce:mst(gpu) reduce:mst(box) | reduce:mst(box) reduce:mst(gpu)",
                          MESHCOLL_REDUCE, &mesh, &s),
        MESHCOLL_OK);
    cr_expect_eq(mc_strategy_check_order(&s, &mesh), MESHCOLL_ERR_STRATEGY);
    cr_expect_not_null(strstr(meshcoll_last_error(),
                              "on the second side, phase 1, reduce:mst(box), comes before gpu is"),
                       "%s", meshcoll_last_error());
}

Test(strategy, too_many_phases_are_refused)
{
    const mc_mesh_t mesh = mesh_of("x=1,y=2");
    char text[2048] = "";
    for (int i = 0; i < MC_MAX_PHASES; i++)
        strcat(text, "bcast:mst(x) ");
    strcat(text, "bcast:mst(y)");
    mc_strategy_t s;
    cr_assert_eq(mc_strategy_parse(text, MESHCOLL_BCAST, &mesh, &s), MESHCOLL_ERR_STRATEGY);
    cr_assert(strstr(meshcoll_last_error(), "at most"), "%s", meshcoll_last_error());
}

/* Reduce-scatter inside the box first: chunks of one box coordinate must lie side by side. */
Test(strategy, chunks_are_ordered_as_the_strategy_nests)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=8");
    mc_strategy_t s;
    mc_layout_t layout;
    cr_assert_eq(mc_strategy_parse("hierarchical", MESHCOLL_ALLREDUCE, &mesh, &s), 0);
    cr_assert_eq(mc_strategy_layout(&s, &mesh, &layout), 0);
    cr_assert_eq(layout.stride[0][1], 4);
    cr_assert_eq(layout.stride[0][0], 1);
    cr_assert_eq(mc_strategy_parse("option3", MESHCOLL_BCAST, &mesh, &s), 0);
    cr_assert_eq(mc_strategy_layout(&s, &mesh, &layout), 0);
    cr_assert_eq(layout.stride[0][1], 1);
    cr_assert_eq(mc_strategy_parse("hierarchical", MESHCOLL_ALLGATHER, &mesh, &s), 0);
    cr_assert_eq(mc_strategy_layout(&s, &mesh, &layout), 0);
    cr_assert_eq(layout.stride[0][0], 1, "box is joined first, so it lies innermost");
}

/* A dimension that one side cuts is cut in both; it lies innermost where nothing cuts it. */
Test(strategy, each_side_orders_its_chunks)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=8");
    mc_strategy_t s;
    mc_layout_t layout;
    cr_assert_eq(mc_strategy_parse("torus", MESHCOLL_ALLREDUCE, &mesh, &s), 0);
    cr_assert_eq(mc_strategy_layout(&s, &mesh, &layout), 0);
    cr_assert_eq(layout.sides, 2);
    cr_assert_eq(layout.per_segment, 32);
    cr_assert_eq(layout.stride[0][1], 4);
    cr_assert_eq(layout.stride[1][0], 8);
    cr_assert_eq(mc_strategy_parse("scatter:mst(gpu) bcast:mst(box) allgather:ring(gpu) | option1",
                                   MESHCOLL_BCAST, &mesh, &s),
                 0);
    cr_assert_eq(mc_strategy_layout(&s, &mesh, &layout), 0);
    cr_assert_eq(layout.per_segment, 8);
}

Test(strategy, every_algorithm_is_found_by_its_name)
{
    for (int32_t i = 0; i < mc_n_algorithms; i++) {
        const mc_algorithm_t *const a = &mc_algorithms[i];
        cr_assert_eq(mc_algorithm_find(a->collective, a->name, strlen(a->name)), i);
        cr_assert(a->generate || a->parts);
        cr_assert(a->cost || a->parts);
    }
}
