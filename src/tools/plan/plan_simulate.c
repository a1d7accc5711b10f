/* The cheapest strategies by the model, ranked by simulation on a network. */
#include "simulate/simulate.h"
#include "tools/plan/plan_command.h"

#include <stdlib.h>

typedef struct {
    const mc_ranked_t *ranked;
    uint32_t place; /* in the list of the model, from 1 */
    double seconds;
} simulated_t;

static int by_seconds(const void *a, const void *b)
{
    const simulated_t *const x = a, *const y = b;
    return x->seconds != y->seconds ? (x->seconds > y->seconds) - (x->seconds < y->seconds)
                                    : (x->place > y->place) - (x->place < y->place);
}

static int simulate_all(const mc_plan_request_t *r, simulated_t *all, uint32_t n)
{
    int status = MESHCOLL_OK;
    for (uint32_t i = 0; i < n && !status; i++) {
        mc_simulated_t result;
        const mc_simulation_t q = {.mesh = &r->mesh,
                                   .links = &r->links,
                                   .strategy = &all[i].ranked->strategy,
                                   .root = r->root,
                                   .bytes = (double)r->bytes,
                                   .network = r->between.fitted,
                                   .order = r->order};
        status = mc_simulate(&q, &result);
        all[i].seconds = status ? 0 : (double)result.ps / 1e12;
    }
    qsort(all, n, sizeof *all, by_seconds);
    return status;
}

static int print(const mc_plan_request_t *r, const simulated_t *all, uint32_t n)
{
    mc_table_t table = mc_table("rrrl");
    table.breaks = true;
    putchar('\n');
    mc_show_sentence(0,
                     "the cheapest with each order of phases, then the next cheapest, %u in all, "
                     "simulated on %s%s, the fastest first:",
                     n, r->network ? r->network : "boxes joined without sharing",
                     r->order ? " with the ranks in the order given" : "");
    putchar('\n');
    mc_table_add(&table, "#\tsimulated\tprice\tstrategy");
    for (uint32_t i = 0; i < n; i++)
        mc_table_add(&table, "%u\t%s\t%s\t%s", all[i].place, mc_print_seconds(all[i].seconds).text,
                     mc_print_seconds(all[i].ranked->seconds).text,
                     mc_show_strategy(&all[i].ranked->strategy, &r->mesh));
    return mc_table_print(&table, 2, stdout);
}

/* The cheapest of each order of phases, then the cheapest of the others, in the order of the list. */
static int choose(const mc_ranking_t *ranking, simulated_t *all, uint32_t n)
{
    uint32_t *const at = malloc(2 * ((size_t)ranking->n + 1) * sizeof *at);
    bool *const taken = calloc((size_t)ranking->n + 1, sizeof *taken);
    const bool made = at && taken;
    uint32_t left =
        made ? n - mc_plan_shapes(ranking->list, ranking->n, n, at, at + ranking->n + 1) : 0;
    for (uint32_t i = 0; made && i < n - left; i++)
        taken[at[i]] = true;
    for (uint32_t i = 0, k = 0; made && i < ranking->n && k < n; i++) {
        left -= !taken[i] && left > 0 ? taken[i] = true : false;
        if (taken[i])
            all[k++] = (simulated_t){&ranking->list[i], i + 1, 0};
    }
    free(taken);
    free(at);
    return made ? MESHCOLL_OK : mc_fail_memory("the simulations");
}

int mc_plan_simulate(const mc_plan_request_t *r, const mc_ranking_t *ranking, json_t *json)
{
    const uint32_t n = ranking->n < (uint32_t)r->simulate ? ranking->n : (uint32_t)r->simulate;
    simulated_t *const all = calloc((size_t)n + 1, sizeof *all);
    int status = all ? MESHCOLL_OK : mc_fail_memory("the simulations");
    if (!status)
        status = choose(ranking, all, n);
    if (!status)
        status = simulate_all(r, all, n);
    if (!status && !json)
        status = print(r, all, n);
    json_t *const list = json ? json_array() : NULL;
    for (uint32_t i = 0; i < n && json && !status; i++)
        json_array_append_new(
            list, json_pack("{s:i, s:f, s:f, s:s}", "place", (int)all[i].place, "simulated_seconds",
                            all[i].seconds, "seconds", all[i].ranked->seconds, "strategy",
                            mc_show_strategy(&all[i].ranked->strategy, &r->mesh)));
    if (json)
        json_object_set_new(json, "simulated", list);
    free(all);
    return status;
}
