#include "runtime/choice.h"

#include <string.h>

/* How far the planner cuts a vector; it prices each power of two up to this. */
enum { MAX_SEGMENTS = 256 };

int mc_choice_force(mc_choice_t *choice, meshcoll_collective_t collective, const char *strategy,
                    const mc_mesh_t *mesh)
{
    mc_strategy_t parsed;
    if (!strategy) {
        choice->is_forced[collective] = false;
        return MESHCOLL_OK;
    }
    const int status = mc_strategy_parse(strategy, collective, mesh, &parsed);
    if (status)
        return status;
    choice->forced[collective] = parsed;
    choice->is_forced[collective] = true;
    return MESHCOLL_OK;
}

int mc_choice_init(mc_choice_t *choice, const mc_settings_t *settings, const mc_mesh_t *mesh)
{
    for (int c = 0; c < MESHCOLL_COLLECTIVES; c++) {
        const meshcoll_collective_t collective = (meshcoll_collective_t)c;
        const int status = mc_choice_force(choice, collective, settings->strategy[c], mesh);
        if (status)
            return mc_fail(status, "the environment's strategy for %s: %s",
                           meshcoll_collective_name(collective), meshcoll_last_error());
    }
    return MESHCOLL_OK;
}

static const mc_memory_t *remember(mc_choice_t *choice, const mc_wish_t *wish)
{
    for (int i = 0; i < MC_REMEMBERED && choice->memory[i].set; i++) {
        const mc_memory_t found = choice->memory[i];
        if (found.collective != wish->collective || found.root != wish->root ||
            found.bytes != wish->bytes || found.in_order != wish->in_order)
            continue;
        if (i > 0) {
            memmove(&choice->memory[1], &choice->memory[0], (size_t)i * sizeof found);
            choice->memory[0] = found;
        }
        return &choice->memory[0];
    }
    return NULL;
}

static int plan_best(mc_choice_t *choice, const mc_mesh_t *mesh, const mc_links_t *links,
                     const mc_wish_t *wish, mc_ranked_t *chosen)
{
    const mc_memory_t *const known = remember(choice, wish);
    if (known) {
        *chosen = known->best;
        return MESHCOLL_OK;
    }
    const mc_planner_query_t query = {.root = wish->root,
                                      .bytes = (double)wish->bytes,
                                      .max_segments = MAX_SEGMENTS,
                                      .in_order = wish->in_order};
    mc_memory_t fresh = {.collective = wish->collective,
                         .root = wish->root,
                         .bytes = wish->bytes,
                         .in_order = wish->in_order,
                         .set = true};
    const int status = mc_planner_best(wish->collective, mesh, links, &query, &fresh.best);
    if (status)
        return status;
    memmove(&choice->memory[1], &choice->memory[0], (MC_REMEMBERED - 1) * sizeof fresh);
    choice->memory[0] = fresh;
    *chosen = fresh.best;
    return MESHCOLL_OK;
}

/* Says after the reason, which is the last error, what would do. */
static int fail_order(mc_choice_t *choice, const mc_mesh_t *mesh, const mc_links_t *links,
                      const mc_wish_t *wish)
{
    enum { ROOM = 256 };
    char why[ROOM], instead[MC_STRATEGY_TEXT];
    mc_ranked_t best;
    mc_text_t reason = mc_text(why, sizeof why), text = mc_text(instead, sizeof instead);
    mc_text_add(&reason, "%s", meshcoll_last_error());
    const int status = plan_best(choice, mesh, links, wish, &best);
    if (status)
        return status;
    mc_strategy_print(&best.strategy, mesh, &text);
    return mc_fail(MESHCOLL_ERR_STRATEGY, "the operation does not commute, and %s; \"%s\" does",
                   why, instead);
}

int mc_choose(mc_choice_t *choice, const mc_mesh_t *mesh, const mc_links_t *links,
              const mc_wish_t *wish, mc_ranked_t *chosen)
{
    mc_ranked_t r = {0};
    if (wish->strategy) {
        const int status = mc_strategy_parse(wish->strategy, wish->collective, mesh, &r.strategy);
        if (status)
            return status;
    } else if (choice->is_forced[wish->collective] && !wish->unforced) {
        r.strategy = choice->forced[wish->collective];
    } else {
        return plan_best(choice, mesh, links, wish, chosen);
    }
    if (wish->in_order && mc_strategy_check_order(&r.strategy, mesh))
        return fail_order(choice, mesh, links, wish);
    r.seconds = mc_strategy_seconds(&r.strategy, mesh, links, wish->root, (double)wish->bytes);
    *chosen = r;
    return MESHCOLL_OK;
}
