#include "compose/planner/ranking.h"

#include <stdlib.h>

int mc_ranking_add(mc_ranking_t *ranking, const mc_ranked_t *ranked)
{
    mc_ranked_t *const list = mc_grown(ranking->list, ranking->n, &ranking->capacity, sizeof *list);
    if (!list)
        return mc_fail_memory("the planner's list of strategies");
    ranking->list = list;
    list[ranking->n++] = *ranked;
    return MESHCOLL_OK;
}

static int compare_phases(const mc_phase_t *a, const mc_phase_t *b)
{
    const int32_t move = (int32_t)mc_algorithms[a->algorithm].collective -
                         (int32_t)mc_algorithms[b->algorithm].collective;
    if (a->dims.first != b->dims.first)
        return a->dims.first - b->dims.first;
    if (move)
        return move;
    return a->dims.count != b->dims.count ? a->dims.count - b->dims.count
                                          : a->algorithm - b->algorithm;
}

/* Strategies are sorted by cost, then in the order of enumeration, which is that of phases (paths.h). */
static int compare(const void *left, const void *right)
{
    const mc_ranked_t *const a = left, *const b = right;
    const mc_strategy_t *const s = &a->strategy, *const t = &b->strategy;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    if (mc_strategy_sides(s) != mc_strategy_sides(t))
        return mc_strategy_sides(s) - mc_strategy_sides(t);
    for (int32_t i = 0; i < s->n_phases && i < t->n_phases; i++) {
        const int phases = compare_phases(&s->phase[i], &t->phase[i]);
        if (phases)
            return phases;
    }
    return (s->n_phases > t->n_phases) - (s->n_phases < t->n_phases);
}

static void keep_first(mc_ranking_t *ranking)
{
    mc_ranked_t *const list = ranking->list;
    for (uint32_t i = 1; i < ranking->n; i++)
        if (compare(&list[i], &list[0]) < 0)
            list[0] = list[i];
    ranking->n = ranking->n > 0;
}

void mc_ranking_settle(mc_ranking_t *ranking, uint32_t most)
{
    mc_ranked_t *const list = ranking->list;
    uint32_t n = 0;
    if (most == 1) {
        keep_first(ranking);
        return;
    }
    if (ranking->n > 1)
        qsort(list, ranking->n, sizeof *list, compare);
    for (uint32_t i = 0; i < ranking->n && (!most || n < most); i++)
        if (n == 0 || compare(&list[n - 1], &list[i]))
            list[n++] = list[i];
    ranking->n = n;
}
