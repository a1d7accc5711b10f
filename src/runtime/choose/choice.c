#include "runtime/choose/choice.h"

int mc_choice_force(mc_choice_t *choice, meshcoll_collective_t collective, const char *strategy,
                    const mc_mesh_t *mesh)
{
    mc_strategy_t parsed;
    if (strategy) {
        const int status = mc_strategy_parse(strategy, collective, mesh, &parsed);
        if (status)
            return status;
        choice->forced[collective] = parsed;
    }
    choice->by_environment[collective] = false;
    choice->is_forced[collective] = strategy != NULL;
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
        choice->by_environment[c] = settings->strategy[c];
    }
    return MESHCOLL_OK;
}

static void price(const mc_mesh_t *mesh, const mc_links_t *links, const mc_choice_key_t *key,
                  mc_ranked_t *r)
{
    r->seconds = mc_strategy_seconds(&r->strategy, mesh, links, key->root, (double)key->bytes);
}

/* The cheapest on one line of all ranks, on the links of the outermost dimension: ranks in any order are
 * mostly in different boxes from their neighbours. */
static int plan_line(const mc_mesh_t *mesh, const mc_links_t *links, const mc_choice_key_t *key,
                     const mc_planner_query_t *query, mc_ranked_t *best)
{
    mc_mesh_t line = {.ndims = 1, .size = mesh->size, .dim = {mesh->dim[0]}};
    const mc_links_t its = {
        .ndims = 1, .dim = {links->dim[0]}, .correction = {links->correction[0]}};
    line.dim[0].extent = mesh->size;
    mc_planner_query_t straight = *query;
    straight.pacing = NULL;
    const int status = mc_planner_best(key->collective, &line, &its, &straight, best);
    if (status)
        return status;
    for (int32_t i = 0; i < best->strategy.n_phases; i++)
        best->strategy.phase[i].dims = (mc_dims_t){0, mesh->ndims};
    const uint32_t needed =
        mc_strategy_needed(&best->strategy, mesh, links, key->root, query->bytes, query->pacing);
    if (best->strategy.segments < needed)
        best->strategy.segments = needed;
    price(mesh, links, key, best);
    return MESHCOLL_OK;
}

/* The planner's cheapest. */
static int plan_best(const mc_mesh_t *mesh, const mc_links_t *links, const mc_choice_key_t *key,
                     mc_ranked_t *best)
{
    const mc_planner_query_t query = mc_choice_query(key, 1);
    return key->one_line ? plan_line(mesh, links, key, &query, best)
                         : mc_planner_best(key->collective, mesh, links, &query, best);
}

/* Where the ranks stand in another order, the mesh's inner lines do not join neighbours. */
static int check_line(const mc_strategy_t *s, const mc_mesh_t *mesh)
{
    for (int32_t i = 0; i < s->n_phases; i++)
        if (mc_dims_extent(mesh, s->phase[i].dims) != mesh->size)
            return mc_fail(MESHCOLL_ERR_STRATEGY,
                           "the ranks do not stand in the mesh in their order, so that every phase "
                           "goes along all of it");
    return MESHCOLL_OK;
}

static int check_fits(const mc_mesh_t *mesh, const mc_choice_key_t *key,
                      const mc_strategy_t *wanted)
{
    const mc_mesh_t led = mc_mesh_led_by(mesh, key->root);
    if (key->in_order && mc_strategy_check_order(wanted, &led))
        return MESHCOLL_ERR_STRATEGY;
    return key->aligned ? mc_strategy_check_aligned(wanted, mesh, key->aligned) : MESHCOLL_OK;
}

/* A strategy that somebody wants may not keep the order; what would do is said after the reason. A function of its own, as
 * its texts would lie on the stack while others are planned. */
__attribute__((noinline)) static int check_order(const mc_mesh_t *mesh, const mc_links_t *links,
                                                 const mc_choice_key_t *key,
                                                 const mc_strategy_t *wanted)
{
    enum { ROOM = 256 };
    char why[ROOM], instead[MC_STRATEGY_TEXT];
    mc_ranked_t best;
    mc_text_t reason = mc_text(why, sizeof why), text = mc_text(instead, sizeof instead);
    int status = check_fits(mesh, key, wanted);
    if (!status && key->one_line)
        status = check_line(wanted, mesh);
    if (!status)
        return MESHCOLL_OK;
    mc_text_add(&reason, "%s", meshcoll_last_error());
    status = plan_best(mesh, links, key, &best);
    if (status)
        return status;
    mc_strategy_print(&best.strategy, mesh, &text);
    return mc_fail(MESHCOLL_ERR_STRATEGY, "%s, and %s; \"%s\" does",
                   key->aligned ? "reductions are to be reproducible (MESHCOLL_REPRODUCIBLE)"
                                : "the operation does not commute",
                   why, instead);
}

int mc_choose(const mc_choice_t *choice, const mc_mesh_t *mesh, const mc_links_t *links,
              const mc_choice_key_t *key, mc_ranked_t *best)
{
    mc_ranked_t r;
    int status = MESHCOLL_OK;
    if (key->strategy)
        status = mc_strategy_parse(key->strategy, key->collective, mesh, &r.strategy);
    else if (choice->is_forced[key->collective] && !key->unforced)
        r.strategy = choice->forced[key->collective];
    else
        return plan_best(mesh, links, key, best);
    if (!status)
        status = check_order(mesh, links, key, &r.strategy);
    if (status)
        return status;
    price(mesh, links, key, &r);
    *best = r;
    return MESHCOLL_OK;
}
