#include "compose/planner/search/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

void mc_candidates_init(mc_candidates_t *c, mc_priced_t *graph, const mc_links_t *links,
                        double bytes)
{
    *c = (mc_candidates_t){
        .graph = graph, .links = links, .bytes = bytes, .most = 1, .limit = INFINITY};
    c->exact[0] = (mc_phase_cost_t){mc_cost_zero(), mc_cost_zero()};
}

void mc_candidates_free(mc_candidates_t *c)
{
    free(c->list);
    *c = (mc_candidates_t){0};
}

static mc_phase_cost_t longer_by(mc_candidates_t *c, const mc_phase_cost_t *before, uint64_t phase)
{
    const mc_priced_term_t *term = NULL;
    const int32_t n = mc_priced_exact(c->graph, mc_label_step(phase), &term);
    mc_phase_cost_t longer = *before;
    if (n < 0)
        c->status = mc_fail_memory("the planner's exact costs");
    for (int32_t i = 0; i < n; i++) {
        mc_term_t *const once = &longer.once.dim[term[i].dim];
        mc_term_t *const busy = &longer.busy.dim[term[i].dim];
        *once = mc_term_add(once, &term[i].once);
        *busy = mc_term_add(busy, &term[i].busy);
    }
    return longer;
}

const mc_phase_cost_t *mc_candidates_cost(mc_candidates_t *c, int32_t n_phases)
{
    for (; c->n_exact < n_phases; c->n_exact++)
        c->exact[c->n_exact + 1] = longer_by(c, &c->exact[c->n_exact], c->path[c->n_exact]);
    return &c->exact[n_phases];
}

double mc_candidates_seconds(const mc_candidates_t *c, const mc_phase_cost_t *cost,
                             uint32_t segments)
{
    return mc_phase_cost_seconds(cost, c->links, segments, c->bytes);
}

static int compare(const void *left, const void *right)
{
    const mc_candidate_t *const a = left, *const b = right;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    /* no path is the beginning of another */
    for (int32_t i = 0; i < a->n_phases && i < b->n_phases; i++)
        if (a->path[i] != b->path[i])
            return a->path[i] < b->path[i] ? -1 : 1;
    return a->segments < b->segments ? -1 : a->segments > b->segments;
}

void mc_candidates_settle(mc_candidates_t *c)
{
    if (c->n > 1)
        qsort(c->list, c->n, sizeof *c->list, compare);
    if (c->most && c->n >= c->most) {
        c->n = c->most;
        c->limit = c->list[c->most - 1].seconds;
    }
}

static bool make_room(mc_candidates_t *c)
{
    if (c->n < c->room)
        return true;
    const uint32_t room = c->room ? 2 * c->room : FIRST_ROOM;
    mc_candidate_t *const list = realloc(c->list, sizeof *list * room);
    if (!list) {
        c->status = mc_fail_memory("the planner's list of strategies");
        return false;
    }
    c->list = list;
    c->room = room;
    return true;
}

void mc_candidates_add(mc_candidates_t *c, int32_t n_phases, uint32_t segments, double seconds)
{
    c->n_priced++;
    if (seconds > c->limit || c->status || !make_room(c))
        return;
    mc_candidate_t *const entry = &c->list[c->n++];
    *entry = (mc_candidate_t){.seconds = seconds, .segments = segments, .n_phases = n_phases};
    memcpy(entry->path, c->path, sizeof *c->path * (size_t)n_phases);
    /* with several wanted, many are sorted at once */
    if (c->most && (c->most == 1 || c->n >= 2 * c->most + FIRST_ROOM))
        mc_candidates_settle(c);
}

int mc_candidates_rank(const mc_candidates_t *c, mc_ranked_t **ranked, uint32_t *n,
                       uint32_t *considered)
{
    if (c->status)
        return c->status;
    mc_ranked_t *const list = malloc(sizeof *list * (c->n ? c->n : 1));
    if (!list)
        return mc_fail_memory("the planner's list of strategies");
    for (uint32_t i = 0; i < c->n; i++) {
        const mc_candidate_t *const from = &c->list[i];
        mc_strategy_t strategy = {.collective = c->graph->graph.collective,
                                  .segments = from->segments,
                                  .n_phases = from->n_phases};
        for (int32_t k = 0; k < from->n_phases; k++)
            strategy.phase[k] = c->graph->step[mc_label_step(from->path[k])].phase;
        list[i] = (mc_ranked_t){strategy, from->seconds};
    }
    *ranked = list;
    *n = c->n;
    *considered = c->n_priced > UINT32_MAX ? UINT32_MAX : (uint32_t)c->n_priced;
    return MESHCOLL_OK;
}
