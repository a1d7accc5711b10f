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

static int simulate_all(const mc_plan_request_t *r, mc_network_t *network, simulated_t *all,
                        uint32_t n)
{
    int status = network ? mc_simulate_fit(&r->mesh, &r->links, network) : MESHCOLL_OK;
    for (uint32_t i = 0; i < n && !status; i++) {
        mc_simulated_t result;
        const mc_simulation_t q = {.mesh = &r->mesh,
                                   .links = &r->links,
                                   .strategy = &all[i].ranked->strategy,
                                   .root = r->root,
                                   .bytes = (double)r->bytes,
                                   .network = network,
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
    printf("\nthe %u cheapest, simulated on %s%s, the fastest first:\n\n", n,
           r->network ? r->network : "boxes joined without sharing",
           r->order ? " with the ranks in the order given" : "");
    mc_table_add(&table, "#\tsimulated\tprice\tstrategy");
    for (uint32_t i = 0; i < n; i++)
        mc_table_add(&table, "%u\t%s\t%s\t%s", all[i].place, mc_print_seconds(all[i].seconds).text,
                     mc_print_seconds(all[i].ranked->seconds).text,
                     mc_show_strategy(&all[i].ranked->strategy, &r->mesh));
    return mc_table_print(&table, 2, stdout);
}

int mc_plan_simulate(const mc_plan_request_t *r, const mc_ranking_t *ranking, json_t *json)
{
    const uint32_t n = ranking->n < (uint32_t)r->simulate ? ranking->n : (uint32_t)r->simulate;
    mc_network_t network = {0};
    simulated_t *const all = calloc((size_t)n + 1, sizeof *all);
    int status = all ? MESHCOLL_OK : mc_fail_memory("the simulations");
    for (uint32_t i = 0; i < n && !status; i++)
        all[i] = (simulated_t){&ranking->list[i], i + 1, 0};
    if (!status && r->network)
        status = mc_network_parse(r->network, &network);
    if (!status)
        status = simulate_all(r, r->network ? &network : NULL, all, n);
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
    mc_network_free(&network);
    free(all);
    return status;
}
