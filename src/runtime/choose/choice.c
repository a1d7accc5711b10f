#include "runtime/choose/choice.h"

#include <stdlib.h>
#include <string.h>

/* All are forgotten: this happens rarely, and leaves no holes. */
static void forget(mc_choice_t *choice)
{
    memset(choice->bucket, 0, sizeof choice->bucket);
    for (int32_t i = 0; i < choice->n_memory; i++)
        choice->memory[i]->made = 0;
    choice->n_memory = 0;
    choice->n_forgotten++;
}

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
    forget(choice);
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

void mc_choice_free(mc_choice_t *choice)
{
    for (int32_t i = 0; i < MC_REMEMBERED; i++)
        free(choice->memory[i]);
}

void mc_choice_forget_request(mc_choice_t *choice, const meshcoll_request_t *request)
{
    for (int32_t i = 0; i < choice->n_memory; i++)
        if (choice->memory[i]->request == request)
            choice->memory[i]->request = NULL;
}

/* Sizes are often powers of two: the upper bits of a product differ for them. */
static int32_t *bucket_of(mc_choice_t *choice, meshcoll_collective_t collective, int32_t root,
                          uint64_t bytes)
{
    const uint64_t key = bytes ^ (uint64_t)(uint32_t)root << 40 ^ (uint64_t)collective << 32;
    return &choice->bucket[key * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (MC_CHOICE_BUCKETS - 1)];
}

static mc_memory_t *remember(mc_choice_t *choice, const mc_wish_t *wish)
{
    mc_memory_t *m;
    const int32_t first = *bucket_of(choice, wish->collective, wish->root, wish->bytes);
    for (int32_t i = first; i; i = m->next) {
        m = choice->memory[i - 1];
        if (m->bytes == wish->bytes && m->collective == wish->collective && m->root == wish->root &&
            m->unforced == wish->unforced && m->in_order == wish->in_order &&
            m->aligned == (wish->aligned != NULL))
            return m;
    }
    return NULL;
}

/* The index of the one that was not used for longest, taken out of its bucket. */
static int32_t oldest(mc_choice_t *choice)
{
    int32_t found = 0;
    for (int32_t i = 1; i < choice->n_memory; i++)
        if (choice->memory[i]->used < choice->memory[found]->used)
            found = i;
    const mc_memory_t *const m = choice->memory[found];
    int32_t *at = bucket_of(choice, m->collective, m->root, m->bytes);
    while (*at - 1 != found)
        at = &choice->memory[*at - 1]->next;
    *at = m->next;
    choice->n_forgotten++;
    return found;
}

/* The index of a place for a new one; -1: there is no memory. */
static int32_t find_place(mc_choice_t *choice)
{
    const int32_t n = choice->n_memory;
    if (n == MC_REMEMBERED)
        return oldest(choice);
    if (!choice->memory[n] && !(choice->memory[n] = malloc(sizeof **choice->memory)))
        return -1;
    return choice->n_memory++;
}

static mc_memory_t *add(mc_choice_t *choice, const mc_wish_t *wish, const mc_ranked_t *best)
{
    const int32_t place = find_place(choice);
    if (place < 0)
        return NULL;
    mc_memory_t *const m = choice->memory[place];
    int32_t *const bucket = bucket_of(choice, wish->collective, wish->root, wish->bytes);
    *m = (mc_memory_t){.collective = wish->collective,
                       .root = wish->root,
                       .bytes = wish->bytes,
                       .unforced = wish->unforced,
                       .in_order = wish->in_order,
                       .aligned = wish->aligned != NULL,
                       .best = *best,
                       .made = ++choice->n_made,
                       .next = *bucket};
    *bucket = place + 1;
    return m;
}

static void price(const mc_mesh_t *mesh, const mc_links_t *links, const mc_wish_t *wish,
                  mc_ranked_t *r)
{
    r->seconds = mc_strategy_seconds(&r->strategy, mesh, links, wish->root, (double)wish->bytes);
}

/* The cheapest on one line of all ranks, on the links of the outermost dimension: ranks in any order are
 * mostly in different boxes from their neighbours. */
static int plan_line(const mc_mesh_t *mesh, const mc_links_t *links, const mc_wish_t *wish,
                     const mc_planner_query_t *query, mc_ranked_t *best)
{
    mc_mesh_t line = {.ndims = 1, .size = mesh->size, .dim = {mesh->dim[0]}};
    const mc_links_t its = {
        .ndims = 1, .dim = {links->dim[0]}, .correction = {links->correction[0]}};
    line.dim[0].extent = mesh->size;
    mc_planner_query_t straight = *query;
    straight.pacing = NULL;
    const int status = mc_planner_best(wish->collective, &line, &its, &straight, best);
    if (status)
        return status;
    for (int32_t i = 0; i < best->strategy.n_phases; i++)
        best->strategy.phase[i].dims = (mc_dims_t){0, mesh->ndims};
    const uint32_t needed =
        mc_strategy_needed(&best->strategy, mesh, links, wish->root, query->bytes, query->pacing);
    if (best->strategy.segments < needed)
        best->strategy.segments = needed;
    price(mesh, links, wish, best);
    return MESHCOLL_OK;
}

/* The planner's cheapest. */
static int plan_best(const mc_mesh_t *mesh, const mc_links_t *links, const mc_wish_t *wish,
                     mc_ranked_t *best)
{
    const mc_planner_query_t query = {.root = wish->root,
                                      .bytes = (double)wish->bytes,
                                      .max_segments = MC_MAX_SEGMENTS,
                                      .in_order = wish->in_order,
                                      .aligned = wish->aligned,
                                      .pacing = &wish->pacing};
    return wish->one_line ? plan_line(mesh, links, wish, &query, best)
                          : mc_planner_best(wish->collective, mesh, links, &query, best);
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

static int check_fits(const mc_mesh_t *mesh, const mc_wish_t *wish, const mc_strategy_t *wanted)
{
    const mc_mesh_t led = mc_mesh_led_by(mesh, wish->root);
    if (wish->in_order && mc_strategy_check_order(wanted, &led))
        return MESHCOLL_ERR_STRATEGY;
    return wish->aligned ? mc_strategy_check_aligned(wanted, mesh, wish->aligned) : MESHCOLL_OK;
}

/* A strategy that somebody wants may not keep the order; what would do is said after the reason. */
static int check_order(const mc_mesh_t *mesh, const mc_links_t *links, const mc_wish_t *wish,
                       const mc_strategy_t *wanted)
{
    enum { ROOM = 256 };
    char why[ROOM], instead[MC_STRATEGY_TEXT];
    mc_ranked_t best;
    mc_text_t reason = mc_text(why, sizeof why), text = mc_text(instead, sizeof instead);
    int status = check_fits(mesh, wish, wanted);
    if (!status && wish->one_line)
        status = check_line(wanted, mesh);
    if (!status)
        return MESHCOLL_OK;
    mc_text_add(&reason, "%s", meshcoll_last_error());
    status = plan_best(mesh, links, wish, &best);
    if (status)
        return status;
    mc_strategy_print(&best.strategy, mesh, &text);
    return mc_fail(MESHCOLL_ERR_STRATEGY, "%s, and %s; \"%s\" does",
                   wish->aligned ? "reductions are to be reproducible (MESHCOLL_REPRODUCIBLE)"
                                 : "the operation does not commute",
                   why, instead);
}

static int choose_anew(const mc_choice_t *choice, const mc_mesh_t *mesh, const mc_links_t *links,
                       const mc_wish_t *wish, mc_ranked_t *best)
{
    if (choice->is_forced[wish->collective] && !wish->unforced) {
        best->strategy = choice->forced[wish->collective];
        price(mesh, links, wish, best);
        return check_order(mesh, links, wish, &best->strategy);
    }
    return plan_best(mesh, links, wish, best);
}

/* A text is parsed at each call; it is not remembered. */
static int choose_asked(mc_choice_t *choice, const mc_mesh_t *mesh, const mc_links_t *links,
                        const mc_wish_t *wish, mc_memory_t **chosen)
{
    mc_ranked_t *const r = &choice->asked.best;
    int status = mc_strategy_parse(wish->strategy, wish->collective, mesh, &r->strategy);
    if (!status)
        status = check_order(mesh, links, wish, &r->strategy);
    if (status)
        return status;
    price(mesh, links, wish, r);
    choice->asked.request = NULL;
    *chosen = &choice->asked;
    return MESHCOLL_OK;
}

int mc_choose(mc_choice_t *choice, const mc_mesh_t *mesh, const mc_links_t *links,
              const mc_wish_t *wish, mc_memory_t **chosen)
{
    if (wish->strategy)
        return choose_asked(choice, mesh, links, wish, chosen);
    mc_memory_t *m = remember(choice, wish);
    if (!m) {
        mc_ranked_t best;
        const int status = choose_anew(choice, mesh, links, wish, &best);
        if (status)
            return status;
        if (!(m = add(choice, wish, &best)))
            return mc_fail_memory("a choice");
    }
    mc_choice_touch(choice, m);
    *chosen = m;
    return MESHCOLL_OK;
}
