/* Choices: a function of what is asked for, whatever was before; forced ones; how finely they cut. */
#include "runtime/choose/choice.h"
#include "runtime/execute/pace.h"

#include <criterion/criterion.h>

#include <stdlib.h>

typedef struct {
    mc_mesh_t mesh;
    mc_links_t links;
    mc_choice_t choice;
} place_t;

static void begin_on(place_t *at, const char *mesh)
{
    *at = (place_t){0};
    cr_assert_eq(mc_mesh_parse(mesh, &at->mesh), MESHCOLL_OK);
    cr_assert_eq(mc_links_parse("lab", &at->mesh, &at->links), MESHCOLL_OK);
}

static void begin(place_t *at)
{
    begin_on(at, "box=3,gpu=4");
}

static mc_ranked_t choose(const place_t *at, const mc_choice_key_t *key)
{
    mc_ranked_t chosen = {0};
    cr_assert_eq(mc_choose(&at->choice, &at->mesh, &at->links, key, &chosen), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    return chosen;
}

static mc_ranked_t bcast_of(const place_t *at, uint64_t bytes, int32_t root)
{
    return choose(
        at, &(mc_choice_key_t){
                .collective = MESHCOLL_BCAST, .bytes = bytes, .pacing.wire = -1, .root = root});
}

static bool same(const mc_ranked_t *a, const mc_ranked_t *b)
{
    return mc_strategy_equal(&a->strategy, &b->strategy) && a->seconds == b->seconds;
}

/* Whatever was chosen before, in whatever order: so ranks need not remember alike. */
Test(choice, is_the_planners_whatever_was_before)
{
    enum { SIZES = 40 };
    place_t at;
    mc_ranked_t first[SIZES];
    begin(&at);
    for (int i = 0; i < SIZES; i++) {
        const uint64_t bytes = UINT64_C(1) << i / 2;
        const mc_planner_query_t query = {
            .root = i % 12, .bytes = (double)bytes, .max_segments = MC_MAX_SEGMENTS};
        mc_ranked_t best;
        cr_assert_eq(mc_planner_best(MESHCOLL_BCAST, &at.mesh, &at.links, &query, &best),
                     MESHCOLL_OK);
        first[i] = bcast_of(&at, bytes, i % 12);
        cr_expect(same(&first[i], &best));
    }
    for (int i = SIZES - 1; i >= 0; i -= 3) {
        const mc_ranked_t again = bcast_of(&at, UINT64_C(1) << i / 2, i % 12);
        cr_expect(same(&again, &first[i]));
    }
}

Test(choice, forced_ones_hold_until_they_are_not)
{
    place_t at;
    mc_strategy_t forced;
    begin(&at);
    const char *const text = "bcast:chain(box) bcast:star(gpu) segments=2";
    cr_assert_eq(mc_strategy_parse(text, MESHCOLL_BCAST, &at.mesh, &forced), MESHCOLL_OK);
    const mc_ranked_t best = bcast_of(&at, 64, 0);
    cr_assert_not(mc_strategy_equal(&best.strategy, &forced));
    cr_assert_eq(mc_choice_force(&at.choice, MESHCOLL_BCAST, text, &at.mesh), MESHCOLL_OK);
    mc_ranked_t m = bcast_of(&at, 64, 0);
    cr_expect(mc_strategy_equal(&m.strategy, &forced));
    cr_expect_eq(m.seconds, mc_strategy_seconds(&forced, &at.mesh, &at.links, 0, 64));
    const mc_choice_key_t unforced = {
        .collective = MESHCOLL_BCAST, .bytes = 64, .pacing.wire = -1, .unforced = true};
    m = choose(&at, &unforced);
    cr_expect(same(&m, &best));
    cr_assert_lt(mc_choice_force(&at.choice, MESHCOLL_BCAST, "nonsense", &at.mesh), 0);
    m = bcast_of(&at, 64, 0);
    cr_expect(mc_strategy_equal(&m.strategy, &forced));
    cr_assert_eq(mc_choice_force(&at.choice, MESHCOLL_BCAST, NULL, &at.mesh), MESHCOLL_OK);
    m = bcast_of(&at, 64, 0);
    cr_expect(same(&m, &best));
    const mc_choice_key_t asked = {
        .collective = MESHCOLL_BCAST, .bytes = 64, .pacing.wire = -1, .strategy = text};
    m = choose(&at, &asked);
    cr_expect(mc_strategy_equal(&m.strategy, &forced));
    m = bcast_of(&at, 64, 0);
    cr_expect(same(&m, &best));
}

/* A message is held back as a whole (runtime/execute/pace.h). */
Test(choice, cuts_what_all_send_to_all)
{
    static const char *const meshes[] = {"box=4+3+1", "box=4,gpu=4"};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        place_t at;
        begin_on(&at, meshes[i]);
        const uint64_t block = 1 << 20, bytes = block * (uint64_t)at.mesh.size;
        const mc_ranked_t large = choose(&at, &(mc_choice_key_t){.collective = MESHCOLL_ALLTOALL,
                                                                 .bytes = bytes,
                                                                 .pacing.wire = 0,
                                                                 .pacing.window = MC_LINK_WINDOW});
        cr_expect_geq(large.strategy.segments, 32, "%s", meshes[i]);
        const mc_ranked_t small = choose(&at, &(mc_choice_key_t){.collective = MESHCOLL_ALLTOALL,
                                                                 .bytes = 64,
                                                                 .pacing.wire = 0,
                                                                 .pacing.window = MC_LINK_WINDOW});
        cr_expect_eq(small.strategy.segments, 1, "%s", meshes[i]);
    }
}

/* A wire that holds more lets larger pieces go. */
Test(choice, cuts_less_where_more_may_be_on_the_way)
{
    place_t narrow, wide;
    mc_choice_key_t key = {.collective = MESHCOLL_ALLTOALL,
                           .bytes = 16 << 20,
                           .pacing.wire = 0,
                           .pacing.window = MC_LINK_WINDOW};
    begin_on(&narrow, "box=4,gpu=4");
    begin_on(&wide, "box=4,gpu=4");
    const uint32_t pieces = choose(&narrow, &key).strategy.segments;
    key.pacing.window *= 4;
    cr_expect_eq(choose(&wide, &key).strategy.segments, pieces / 4);
}

/* Bytes of all ranks' messages between boxes over their number, in one segment. */
static double mean_message(const place_t *at, const mc_ranked_t *m, double bytes)
{
    double messages = 0, volume = 0;
    for (int32_t i = 0; i < m->strategy.n_phases; i++) {
        const mc_phase_cost_t cost =
            mc_strategy_phase_cost(&m->strategy, &at->mesh, &at->links, 0, i);
        messages += (double)cost.once.dim[0].messages;
        volume += mc_ratio_value(cost.once.dim[0].volume) * bytes;
    }
    return volume / messages / m->strategy.segments;
}

/* Other exchanges are; where the receivers hold their senders back, as over RDMA, nothing is. */
Test(choice, cuts_exchanges_where_sends_stream)
{
    static const meshcoll_collective_t by[] = {MESHCOLL_ALLGATHER, MESHCOLL_REDUCE_SCATTER,
                                               MESHCOLL_ALLREDUCE};
    const uint64_t bytes = 32 << 20;
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        place_t streaming, other;
        mc_ranked_t best;
        begin_on(&streaming, "box=4,gpu=4");
        begin_on(&other, "box=4,gpu=4");
        const mc_planner_query_t query = {.bytes = (double)bytes, .max_segments = MC_MAX_SEGMENTS};
        cr_assert_eq(mc_planner_best(by[i], &other.mesh, &other.links, &query, &best), MESHCOLL_OK);
        const mc_ranked_t cut =
            choose(&streaming, &(mc_choice_key_t){.collective = by[i],
                                                  .bytes = bytes,
                                                  .pacing.wire = 0,
                                                  .pacing.window = MC_LINK_WINDOW});
        const mc_ranked_t whole = choose(
            &other, &(mc_choice_key_t){.collective = by[i], .bytes = bytes, .pacing.wire = -1});
        cr_expect_leq(mean_message(&streaming, &cut, (double)bytes),
                      mc_pacing_message(MC_LINK_WINDOW, 4));
        cr_expect(mc_strategy_equal(&whole.strategy, &best.strategy));
        cr_expect_gt(mean_message(&other, &whole, (double)bytes),
                     mc_pacing_message(MC_LINK_WINDOW, 4), "tells nothing");
    }
}

/* Bytes of the largest message between boxes that any rank sends or gets. */
static double largest_message(const place_t *at, const mc_ranked_t *m, double bytes)
{
    double most = 0;
    for (int32_t r = 0; r < at->mesh.size; r++) {
        mc_plan_t *plan;
        cr_assert_eq(mc_strategy_plan(&m->strategy, &at->mesh, r, 0, &plan), MESHCOLL_OK);
        const int32_t inside = mc_mesh_stride(&at->mesh, 0);
        for (uint32_t t = 0; t < plan->n_steps; t++) {
            const mc_step_t *const s = &plan->step[t];
            const double chunks = (double)s->run * s->nrun / plan->n_chunks;
            if (s->peer >= 0 && s->peer / inside != r / inside && chunks * bytes > most)
                most = chunks * bytes;
        }
        mc_plan_free(plan);
    }
    return most;
}

/* Ranks of one box that send to other boxes, or get from them, at most. */
static int32_t oversubscription_of(const place_t *at, const mc_ranked_t *m)
{
    const int32_t inside = mc_mesh_stride(&at->mesh, 0);
    int32_t most = 0;
    for (int32_t box = 0; box < at->mesh.size / inside; box++) {
        int32_t crowd = 0;
        for (int32_t r = box * inside; r < (box + 1) * inside; r++) {
            mc_plan_t *plan;
            bool leaves = false;
            cr_assert_eq(mc_strategy_plan(&m->strategy, &at->mesh, r, 0, &plan), MESHCOLL_OK);
            for (uint32_t t = 0; t < plan->n_steps; t++)
                leaves = leaves || (plan->step[t].peer >= 0 && plan->step[t].peer / inside != box);
            mc_plan_free(plan);
            crowd += leaves;
        }
        most = crowd > most ? crowd : most;
    }
    return most;
}

/* Of what goes from several to one, or from one to several, two messages fit in what may be on the way, and no four. */
Test(choice, cuts_what_credits_pace_no_finer_than_they_need)
{
    static const meshcoll_collective_t by[] = {MESHCOLL_GATHER, MESHCOLL_SCATTER};
    static const char *const meshes[] = {"box=4,gpu=4", "box=8,gpu=2"};
    const uint64_t bytes = 8 << 20;
    for (size_t i = 0; i < MC_COUNT(by) * MC_COUNT(meshes); i++) {
        place_t at;
        begin_on(&at, meshes[i / MC_COUNT(by)]);
        const mc_ranked_t cut = choose(&at, &(mc_choice_key_t){.collective = by[i % MC_COUNT(by)],
                                                               .bytes = bytes,
                                                               .pacing.wire = 0,
                                                               .pacing.window = MC_LINK_WINDOW});
        const double message = largest_message(&at, &cut, (double)bytes);
        const double most =
            (double)mc_pacing_credited(MC_LINK_WINDOW, oversubscription_of(&at, &cut));
        cr_expect_leq(message, most);
        cr_expect_gt(2 * message, most);
    }
}

/* What is chosen is the cheapest of what would run, each in the segments that it needs: none of those that are cheaper
 * in fewer segments is cheaper in its own. */
Test(choice, ranks_in_the_segments_that_run)
{
    static const char *const meshes[] = {"box=4,gpu=4", "box=3,gpu=2", "box=8"};
    const uint64_t bytes = 8 << 20;
    for (size_t i = 0; i < MC_COUNT(meshes) * MESHCOLL_COLLECTIVES; i++) {
        place_t at;
        mc_ranking_t ranking;
        const meshcoll_collective_t which = (meshcoll_collective_t)(i % MESHCOLL_COLLECTIVES);
        const mc_pacing_t pacing = {.wire = 0, .window = MC_LINK_WINDOW};
        begin_on(&at, meshes[i / MESHCOLL_COLLECTIVES]);
        const mc_ranked_t m = choose(&at, &(mc_choice_key_t){.collective = which,
                                                             .bytes = bytes,
                                                             .pacing.wire = 0,
                                                             .pacing.window = MC_LINK_WINDOW});
        const mc_planner_query_t query = {.bytes = (double)bytes, .max_segments = MC_MAX_SEGMENTS};
        cr_assert_eq(mc_planner_rank(which, &at.mesh, &at.links, &query, &ranking), MESHCOLL_OK);
        for (uint32_t k = 0; k < ranking.n && k < 5000; k++) {
            mc_strategy_t *const s = &ranking.list[k].strategy;
            const uint32_t needed =
                mc_strategy_needed(s, &at.mesh, &at.links, 0, (double)bytes, &pacing);
            s->segments = s->segments > needed ? s->segments : needed;
            cr_expect_leq(m.seconds, mc_strategy_seconds(s, &at.mesh, &at.links, 0, (double)bytes));
        }
        cr_expect_geq(m.strategy.segments, mc_strategy_needed(&m.strategy, &at.mesh, &at.links, 0,
                                                              (double)bytes, &pacing));
        free(ranking.list);
    }
}

/* What a chain is sent in pieces goes in quarters of what may be on the way: what has come is said behind what its
 * receiver sends on. What fits in a window has no credits, and is left as it is. */
Test(choice, cuts_chains_as_exchanges)
{
    static const meshcoll_collective_t by[] = {MESHCOLL_BCAST, MESHCOLL_REDUCE};
    const uint64_t bytes = 64 << 20;
    for (size_t i = 0; i < MC_COUNT(by); i++) {
        place_t cut, whole;
        begin_on(&cut, "box=4,gpu=4");
        begin_on(&whole, "box=4,gpu=4");
        mc_choice_key_t key = {.collective = by[i], .bytes = bytes, .pacing.wire = 0};
        key.pacing.window = MC_LINK_WINDOW;
        const mc_ranked_t pieces = choose(&cut, &key);
        key.pacing.window = bytes;
        const mc_ranked_t left = choose(&whole, &key);
        cr_expect_leq(largest_message(&cut, &pieces, (double)bytes),
                      mc_pacing_message(MC_LINK_WINDOW, 1));
        cr_expect_gt(largest_message(&whole, &left, (double)bytes),
                     mc_pacing_message(MC_LINK_WINDOW, 1));
    }
}
