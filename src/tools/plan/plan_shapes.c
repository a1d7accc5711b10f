/* What differs in a ranking: the cheapest strategy of each shape, and the named ones. */
#include "tools/plan/plan_command.h"

#include <string.h>

static bool prints_the_same(double a, double b)
{
    return strcmp(mc_print_seconds(a).text, mc_print_seconds(b).text) == 0;
}

static bool is_seen(const mc_ranked_t *ranked, uint32_t i, const uint32_t *at, uint32_t n)
{
    bool seen = false;
    for (uint32_t k = 0; k < n && !seen; k++)
        seen = mc_strategy_alike(&ranked[i].strategy, &ranked[at[k]].strategy, false);
    return seen;
}

uint32_t mc_plan_shapes(const mc_ranked_t *ranked, uint32_t n, uint32_t most, uint32_t *at,
                        uint32_t *tied)
{
    uint32_t shapes = 0, rows = 0, shown = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (is_seen(ranked, i, at, shapes))
            continue;
        rows += shapes == 0 || !prints_the_same(ranked[at[shapes - 1]].seconds, ranked[i].seconds);
        if (rows > most)
            break;
        at[shapes++] = i;
    }
    for (uint32_t k = 0; k < shapes; k++) {
        if (shown > 0 && prints_the_same(ranked[at[shown - 1]].seconds, ranked[at[k]].seconds)) {
            tied[shown - 1]++;
            continue;
        }
        at[shown] = at[k];
        tied[shown++] = 0;
    }
    return shown;
}

/* Priced with each number of segments that the planner would try, from the least that pacing needs on; the smallest of
 * equal ones. */
static mc_ranked_t price(const mc_plan_request_t *r, const mc_strategy_t *strategy)
{
    mc_ranked_t best = {.strategy = *strategy}, one = best;
    const uint32_t sides = (uint32_t)mc_strategy_sides(strategy),
                   needed = mc_strategy_needed(strategy, &r->mesh, &r->links, r->root,
                                               (double)r->bytes, &r->pacing),
                   first = needed > sides ? needed : sides;
    for (uint32_t k = first; k <= (uint32_t)r->max_segments || k == first; k *= 2) {
        one.strategy.segments = k;
        one.seconds =
            mc_strategy_seconds(&one.strategy, &r->mesh, &r->links, r->root, (double)r->bytes);
        if (k == first || one.seconds < best.seconds)
            best = one;
    }
    return best;
}

bool mc_plan_named(const mc_plan_request_t *r, int32_t i, mc_ranked_t *named)
{
    const mc_named_t *const entry = mc_named_at(i);
    mc_strategy_t strategy;
    if (entry->collective != r->collective ||
        mc_strategy_named(entry->name, r->collective, &r->mesh, &strategy) ||
        mc_plan_check(r, &strategy))
        return false;
    *named = price(r, &strategy);
    return true;
}
