/*
 * Candidates: what calls try where the links are wrong. Planned on the links of one cluster and run on those of another,
 * by price, as nothing runs here.
 */
#include "compose/strategy/order.h"
#include "runtime/adapt/learner.h"
#include "runtime/choose/candidates.h"

#include <criterion/criterion.h>
#include <math.h>

typedef struct {
    mc_mesh_t mesh;
    mc_links_t believed, real;
    mc_choice_t choice;
} place_t;

static void begin(place_t *at, const char *mesh, const char *believed, const char *real)
{
    *at = (place_t){0};
    cr_assert_eq(mc_mesh_parse(mesh, &at->mesh), MESHCOLL_OK);
    cr_assert_eq(mc_links_parse(believed, &at->mesh, &at->believed), MESHCOLL_OK);
    cr_assert_eq(mc_links_parse(real, &at->mesh, &at->real), MESHCOLL_OK);
}

static mc_choice_key_t key_of(meshcoll_collective_t collective, double bytes, bool ordered)
{
    return (mc_choice_key_t){
        .collective = collective, .bytes = (uint64_t)bytes, .pacing.wire = -1, .ordered = ordered};
}

static double real_seconds(const place_t *at, const mc_strategy_t *s, const mc_choice_key_t *key)
{
    return mc_strategy_seconds(s, &at->mesh, &at->real, key->root, (double)key->bytes);
}

/* What is used after 200 calls of one rank that stands for all. */
static mc_ranked_t learn(const place_t *at, const mc_choice_key_t *key, mc_learner_t *l)
{
    mc_ranked_t first, candidate[MC_CANDIDATES - 1];
    int64_t words[MC_LEARN_WORDS];
    int32_t n;
    cr_assert_eq(mc_choose(&at->choice, &at->mesh, &at->believed, key, &first), MESHCOLL_OK);
    *l = mc_learner(&first, 0);
    for (uint32_t i = 0; i < 200;) {
        if (mc_learner_waits(l))
            mc_learner_agree(l, words);
        if (l->phase == MC_LEARN_WANTS) {
            cr_assert_eq(mc_candidates_find(&at->mesh, &at->believed, key, &first,
                                            MC_CANDIDATES - 1, candidate, &n),
                         MESHCOLL_OK);
            mc_learner_offer(l, candidate, n);
        }
        const mc_learn_turn_t turn = mc_learner_next(l);
        i += turn.calls;
        if (turn.agrees)
            mc_learner_tell(l, words);
        if (turn.timed)
            mc_learner_note(
                l, turn.candidate,
                (int64_t)(real_seconds(at, &l->candidate[turn.candidate].strategy, key) * 1e9));
    }
    cr_assert_eq(l->phase, MC_LEARN_SETTLED);
    return l->candidate[l->best];
}

static const meshcoll_collective_t some[] = {MESHCOLL_BCAST, MESHCOLL_ALLREDUCE, MESHCOLL_ALLGATHER,
                                             MESHCOLL_REDUCE_SCATTER, MESHCOLL_ALLTOALL};

/* Never slower than the planner's on what it believed; and as a rule faster. */
Test(candidates, help_where_the_links_are_wrong)
{
    static const char *const meshes[] = {"box=4,gpu=4", "box=8,gpu=2", "box=4,gpu=1", "gpu=8"};
    double gain = 0;
    int n = 0, better = 0;
    for (size_t m = 0; m < MC_COUNT(meshes); m++)
        for (size_t c = 0; c < MC_COUNT(some); c++)
            for (double bytes = 64; bytes < 1e8; bytes *= 32) {
                place_t at;
                mc_learner_t l;
                const mc_choice_key_t key = key_of(some[c], bytes, false);
                begin(&at, meshes[m], "dgx-h100", "lab");
                const mc_ranked_t learned = learn(&at, &key, &l);
                const double first = real_seconds(&at, &l.candidate[0].strategy, &key),
                             now = real_seconds(&at, &learned.strategy, &key);
                for (int32_t i = 0; i < l.n; i++)
                    cr_expect_leq(now, real_seconds(&at, &l.candidate[i].strategy, &key) / 0.95 *
                                           1.0001);
                gain += log(first / now);
                better += now < 0.99 * first;
                n++;
            }
    cr_expect_gt(better, n / 4, "%d of %d are faster", better, n);
    cr_log_info("%d of %d are faster, by %.3g in the mean", better, n, exp(gain / n));
}

/* All of one order of sums, different from each other, and none predicted to take twice the first. */
Test(candidates, are_few_different_and_not_slow)
{
    place_t at;
    begin(&at, "box=4,gpu=4", "lab", "lab");
    for (int ordered = 0; ordered < 2; ordered++)
        for (double bytes = 64; bytes < 1e8; bytes *= 32) {
            const mc_choice_key_t key = key_of(MESHCOLL_ALLREDUCE, bytes, ordered);
            mc_ranked_t first, list[MC_CANDIDATES - 1];
            uint64_t order, of;
            int32_t n;
            cr_assert_eq(mc_choose(&at.choice, &at.mesh, &at.believed, &key, &first), MESHCOLL_OK);
            cr_assert_eq(mc_candidates_find(&at.mesh, &at.believed, &key, &first, MC_CANDIDATES - 1,
                                            list, &n),
                         MESHCOLL_OK);
            cr_assert_eq(mc_strategy_sum_order(&first.strategy, &at.mesh, &order), MESHCOLL_OK);
            cr_expect(ordered || n == MC_CANDIDATES - 1);
            for (int32_t i = 0; i < n; i++) {
                cr_expect_leq(list[i].seconds, 2 * first.seconds);
                cr_expect(i == 0 || list[i].seconds >= list[i - 1].seconds);
                cr_expect_not(mc_strategy_equal(&list[i].strategy, &first.strategy));
                for (int32_t k = 0; k < i; k++)
                    cr_expect_not(mc_strategy_equal(&list[i].strategy, &list[k].strategy));
                cr_assert_eq(mc_strategy_sum_order(&list[i].strategy, &at.mesh, &of), MESHCOLL_OK);
                cr_expect(!ordered || of == order);
            }
        }
}
