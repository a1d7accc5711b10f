#include "runtime/choose/candidates.h"

#include "compose/strategy/order.h"

#include <stdlib.h>

/* So many of the planner's list are looked at, of which few have one order of sums. 64 have few others, and took up to
 * five times as long (docs/lab-notes/calibration.md). */
enum { LOOKED_AT = 8, LOOKED_AT_ORDERED = 16 };
/* By this factor the planner's choice is cut into more segments, and into fewer. */
enum { CUT_FACTOR = 4 };
/* None is tried that is predicted to take more than so many times as long as the cheapest. */
static const double WITHIN = 2;

typedef struct {
    const mc_mesh_t *mesh;
    const mc_links_t *links;
    const mc_choice_key_t *key;
    const mc_ranked_t *first;
    mc_ranked_t *list;
    int32_t n, most;
    double limit; /* seconds */
} search_t;

/* Is it as none of those that are in the list, nor as the first? */
static bool is_new(const search_t *s, const mc_strategy_t *strategy, bool algorithms)
{
    bool found = mc_strategy_alike(&s->first->strategy, strategy, algorithms);
    for (int32_t i = 0; i < s->n && !found; i++)
        found = mc_strategy_alike(&s->list[i].strategy, strategy, algorithms);
    return !found;
}

static bool fits(const search_t *s, const mc_ranked_t *r)
{
    return r->seconds <= s->limit &&
           (!s->key->ordered || mc_strategy_sums_as(&r->strategy, &s->first->strategy, s->mesh));
}

static void add(search_t *s, const mc_ranking_t *ranking, int32_t room, bool algorithms)
{
    const int32_t end = s->n + room < s->most ? s->n + room : s->most;
    for (uint32_t i = 0; i < ranking->n && s->n < end; i++)
        if (is_new(s, &ranking->list[i].strategy, algorithms) && fits(s, &ranking->list[i]))
            s->list[s->n++] = ranking->list[i];
}

static bool may_cut(const search_t *s, const mc_strategy_t *strategy, uint32_t segments)
{
    const uint32_t needed = mc_strategy_needed(strategy, s->mesh, s->links, s->key->root,
                                               (double)s->key->bytes, &s->key->pacing);
    return segments > 0 && segments % (uint32_t)mc_strategy_sides(strategy) == 0 &&
           segments <= MC_MAX_SEGMENTS && segments >= needed;
}

static void add_cut(search_t *s, uint32_t segments)
{
    const mc_choice_key_t *const key = s->key;
    mc_ranked_t r = *s->first;
    if (!may_cut(s, &r.strategy, segments) || s->n == s->most)
        return;
    r.strategy.segments = segments;
    r.seconds = mc_strategy_seconds(&r.strategy, s->mesh, s->links, key->root, (double)key->bytes);
    if (fits(s, &r))
        s->list[s->n++] = r;
}

/* Equal ones stay in the order in which they were found, on all ranks. */
static void sort(search_t *s)
{
    for (int32_t i = 1; i < s->n; i++) {
        const mc_ranked_t one = s->list[i];
        int32_t at = i;
        for (; at > 0 && s->list[at - 1].seconds > one.seconds; at--)
            s->list[at] = s->list[at - 1];
        s->list[at] = one;
    }
}

int mc_candidates_find(const mc_mesh_t *mesh, const mc_links_t *links, const mc_choice_key_t *key,
                       const mc_ranked_t *first, int32_t most, mc_ranked_t *candidate, int32_t *n)
{
    const mc_planner_query_t query =
        mc_choice_query(key, key->ordered ? LOOKED_AT_ORDERED : LOOKED_AT);
    const uint32_t cut = first->strategy.segments;
    search_t s = {
        .mesh = mesh, .links = links, .key = key, .first = first, .list = candidate, .most = most};
    mc_ranking_t ranking = {0};
    int status = MESHCOLL_OK;
    if (!key->one_line)
        status = mc_planner_rank(key->collective, mesh, links, &query, &ranking);
    if (status)
        return status;
    s.limit = WITHIN * (ranking.n > 0 ? ranking.list[0].seconds : first->seconds);
    add_cut(&s, cut * CUT_FACTOR);
    add_cut(&s, cut / CUT_FACTOR);
    add(&s, &ranking, (most - s.n) / 2, false);
    add(&s, &ranking, most, true);
    free(ranking.list);
    sort(&s);
    *n = s.n;
    return MESHCOLL_OK;
}

/* The cheapest takes no longer than `first`. */
bool mc_candidates_allow(const mc_mesh_t *mesh, const mc_links_t *links, const mc_choice_key_t *key,
                         const mc_ranked_t *first, const mc_ranked_t *candidate)
{
    const double seconds =
        mc_strategy_seconds(&first->strategy, mesh, links, key->root, (double)key->bytes);
    const search_t s = {
        .mesh = mesh, .links = links, .key = key, .first = first, .limit = WITHIN * seconds};
    return may_cut(&s, &candidate->strategy, candidate->strategy.segments) && fits(&s, candidate);
}
