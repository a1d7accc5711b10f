/*
 * Orders of sums: strategies that claim the same one put the same brackets round every element, as the symbolic
 * machine finds, which sees nothing of how the claim is made.
 */
#include "base/hash.h"
#include "compose/strategy/order.h"
#include "plan/verify/match.h"
#include "runtime/bind/binding.h"
#include "support/plans.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { ELEMENTS = 144, MOST_RANKS_HERE = 16, MOST_STRATEGIES = 60000 };

/* `found`: a hash of the brackets of each rank's elements, and of the ranks in them. */
typedef struct {
    uint64_t claimed, found;
    mc_strategy_t strategy;
} known_t;

typedef struct {
    mc_mesh_t mesh;
    int32_t root;
    size_t count; /* as the call would pass it */
    uint32_t n, shared;
    uint32_t each, met; /* every so manieth strategy is looked at */
    known_t *known;
} sweep_t;

static const char *text_of(const mc_mesh_t *mesh, const mc_strategy_t *s)
{
    static char buffer[2][MC_STRATEGY_TEXT];
    static int which;
    which = !which;
    mc_text_t text = mc_text(buffer[which], sizeof buffer[which]);
    mc_strategy_print(s, mesh, &text);
    return buffer[which];
}

static uint64_t brackets_of(const mc_machine_t *m, mc_value_t value)
{
    mc_value_t left, right;
    if (!mc_value_operands(m, value, &left, &right)) {
        int32_t rank = -1;
        uint32_t n = 0;
        mc_value_ranks(m, value, &rank, 1, &n);
        cr_assert_eq(n, 1);
        return (uint64_t)rank + 1;
    }
    const uint64_t both[2] = {brackets_of(m, left), brackets_of(m, right)};
    return mc_fnv(MC_FNV_START, both, sizeof both);
}

static void run(const mc_world_t *world, mc_machine_t *m)
{
    mc_match_t match;
    uint32_t n;
    mc_value_t *const letter = malloc((1 << 16) * sizeof *letter);
    cr_assert_eq(mc_match_create(world, &match), 0, "%s", meshcoll_last_error());
    uint32_t *const order = malloc((match.n_steps + 1) * sizeof *order);
    cr_assert_eq(mc_match_order(world, &match, MC_IN_TURN_PER_PEER, order, &n), 0);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t step = order[i], index = mc_match_index(&match, step);
        if (match.partner[step] == MC_NO_STEP) {
            cr_assert_eq(mc_machine_local(m, match.rank[step], index), 0);
            continue;
        }
        const uint32_t to = match.partner[step];
        const mc_step_t *const s = mc_match_step(world, &match, step);
        cr_assert_leq((uint64_t)s->run * s->nrun, 1 << 16);
        cr_assert_eq(mc_machine_send(m, match.rank[step], index, letter), 0);
        cr_assert_eq(mc_machine_recv(m, match.rank[to], mc_match_index(&match, to), letter), 0);
    }
    free(order);
    free(letter);
    mc_arena_free(&match.arena);
}

/* The brackets of each element of a rank's OUT, in the order of elements. */
static uint64_t elements_of(const sweep_t *w, const mc_plan_t *plan, const mc_machine_t *m)
{
    static uint64_t by_element[ELEMENTS];
    mc_binding_t b;
    const mc_operands_t operands = {.count = w->count, .datatype = MESHCOLL_UINT8};
    memset(by_element, 0, sizeof by_element);
    cr_assert_eq(mc_binding_init(&b, plan), 0);
    cr_assert_eq(mc_binding_measure(&b, &operands), 0, "%s", meshcoll_last_error());
    for (uint32_t c = 0; c < plan->n_chunks; c++) {
        const mc_value_t value = mc_machine_value(m, plan->rank, MC_OUT, c);
        if (value == MC_NOTHING || mc_layout_absent(&plan->layout, c))
            continue;
        const mc_chunk_t chunk = mc_binding_chunk(&b, MC_OUT, c);
        const uint64_t brackets = brackets_of(m, value);
        cr_assert_leq(chunk.at + chunk.bytes, ELEMENTS);
        for (size_t i = 0; i < chunk.bytes; i++)
            by_element[chunk.at + i] = brackets;
    }
    mc_binding_free(&b);
    return mc_fnv(MC_FNV_START, by_element, sizeof by_element);
}

static uint64_t found_by_machine(const sweep_t *w, const mc_strategy_t *s)
{
    static plans_t p;
    mc_machine_t *m;
    uint64_t hash = MC_FNV_START;
    plans_make(&p, &w->mesh, s, w->root);
    const mc_world_t world = world_of(&p);
    cr_assert_eq(mc_machine_create(&world, false, &m), 0);
    run(&world, m);
    for (int32_t r = 0; r < p.n; r++) {
        const uint64_t mine = elements_of(w, p.plan[r], m);
        hash = mc_fnv(hash, &mine, sizeof mine);
    }
    mc_machine_destroy(m);
    plans_free(&p);
    return hash;
}

static void check(sweep_t *w, const mc_strategy_t *s)
{
    known_t one = {.strategy = *s};
    cr_assert_eq(mc_strategy_sum_order(s, &w->mesh, &one.claimed), 0);
    cr_assert_neq(one.claimed, 0);
    one.found = found_by_machine(w, s);
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->known[i].claimed != one.claimed)
            continue;
        w->shared++;
        cr_expect_eq(w->known[i].found, one.found, "root %d: %s\n   and %s", w->root,
                     text_of(&w->mesh, s), text_of(&w->mesh, &w->known[i].strategy));
        return;
    }
    cr_assert_lt(w->n, MOST_STRATEGIES);
    w->known[w->n++] = one;
}

/* In some cuts: those of a strategy of two sides are even. */
static bool check_cuts(void *context, const mc_strategy_t *strategy)
{
    static const uint32_t cuts[] = {1, 2, 3};
    sweep_t *const w = context;
    mc_strategy_t s = *strategy;
    if (w->met++ % w->each)
        return true;
    for (size_t i = 0; i < MC_COUNT(cuts); i++) {
        s.segments = cuts[i] * (uint32_t)mc_strategy_sides(&s);
        check(w, &s);
    }
    return true;
}

static void check_others(sweep_t *w, meshcoll_collective_t collective)
{
    mc_strategy_t s = {.collective = collective, .n_phases = 1};
    for (int32_t a = 0; a < mc_n_algorithms; a++)
        if (mc_algorithms[a].parts && mc_algorithms[a].collective == collective) {
            s.phase[0] = (mc_phase_t){a, {0, w->mesh.ndims}};
            check_cuts(w, &s);
        }
    const mc_named_t *const two = mc_named_two_sided(collective);
    if (two && mc_strategy_named(two->name, collective, &w->mesh, &s) == MESHCOLL_OK)
        check_cuts(w, &s);
    for (int32_t a = 0; a < mc_n_algorithms; a++)
        if ((mc_algorithms[a].aligned == MC_ALIGNED_ANY || mc_algorithms[a].turned) &&
            mc_algorithms[a].collective == collective) {
            s = (mc_strategy_t){
                .collective = collective, .n_phases = 1, .phase = {{a, {0, w->mesh.ndims}}}};
            check_cuts(w, &s);
        }
}

static void sweep_some(const char *text, mc_paths_t which, uint32_t each)
{
    static const meshcoll_collective_t reducing[] = {MESHCOLL_REDUCE, MESHCOLL_REDUCE_SCATTER,
                                                     MESHCOLL_ALLREDUCE};
    sweep_t w = {.known = malloc(MOST_STRATEGIES * sizeof *w.known)};
    cr_assert_eq(mc_mesh_parse(text, &w.mesh), MESHCOLL_OK);
    cr_assert_leq(w.mesh.size, MOST_RANKS_HERE);
    for (size_t c = 0; c < MC_COUNT(reducing); c++)
        for (w.root = 0; w.root < w.mesh.size; w.root += w.mesh.size - 2) {
            w.n = w.shared = w.met = 0;
            w.each = mc_moves[reducing[c]].to == MC_REPLICA ? each : 1;
            w.count = mc_move_has_blocks(&mc_moves[reducing[c]]) ? ELEMENTS / (size_t)w.mesh.size
                                                                 : ELEMENTS;
            cr_assert_eq(mc_strategy_each(reducing[c], &w.mesh, which, check_cuts, &w), 0);
            w.each = 1;
            check_others(&w, reducing[c]);
            cr_expect_gt(w.n, 1, "%s: all have one order", text);
            cr_expect_gt(w.shared, 0, "%s: each has an order of its own", text);
        }
    free(w.known);
}

static void sweep(const char *text, mc_paths_t which)
{
    sweep_some(text, which, 1);
}

Test(sum_order, is_as_claimed_on_lines)
{
    sweep("x=3", MC_PATHS_ALL);
    sweep("x=4", MC_PATHS_ALL);
    sweep("x=5", MC_PATHS_ALL);
    sweep("x=8", MC_PATHS_ALL);
}

Test(sum_order, is_as_claimed_on_grids)
{
    sweep("box=2,gpu=4", MC_PATHS_COVER);
    sweep("box=4,gpu=2", MC_PATHS_COVER);
    sweep("box=3,gpu=3", MC_PATHS_COVER);
    sweep("box=1,gpu=5", MC_PATHS_COVER);
    sweep_some("x=2,y=2,z=2", MC_PATHS_COVER, 509);
}

Test(sum_order, is_as_claimed_on_boxes_of_unequal_sizes)
{
    sweep("box=3+1+2", MC_PATHS_COVER);
    sweep("box=2+1", MC_PATHS_ALL);
}

Test(sum_order, is_none_where_nothing_is_added)
{
    mc_mesh_t mesh;
    mc_strategy_t s;
    uint64_t order = 1;
    cr_assert_eq(mc_mesh_parse("box=2,gpu=3", &mesh), 0);
    cr_assert_eq(mc_strategy_parse("bcast:mst(box) bcast:star(gpu)", MESHCOLL_BCAST, &mesh, &s), 0);
    cr_assert_eq(mc_strategy_sum_order(&s, &mesh, &order), 0);
    cr_expect_eq(order, 0);
}
