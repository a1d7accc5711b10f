/*
 * The price of strategies against their simulation.
 *   meshcoll-bench-simulate ratios   every strategy of the cover on four meshes: the distribution of
 *                                    simulated / price, and the strategies at its ends
 *   meshcoll-bench-simulate regret   the planner's choice on dgx-h100 against the fastest of its cheapest
 *                                    strategies and the named ones, by simulation, on four networks
 * Both print Markdown (docs/simulate.md).
 */
#include "compose/planner/planner.h"
#include "network/ends.h"
#include "simulate/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(int status)
{
    if (!status)
        return;
    fprintf(stderr, "meshcoll-bench-simulate: %s\n", meshcoll_last_error());
    exit(1);
}

typedef struct {
    double ratio;
    char *what;
} found_t;

static struct {
    mc_mesh_t mesh;
    mc_links_t links;
    const char *links_text;
    double bytes;
    uint32_t segments;
    found_t *found;
    uint32_t n, capacity;
} study;

static double simulated(const mc_strategy_t *s, mc_network_t *network)
{
    mc_simulated_t result;
    const mc_simulation_t q = {.mesh = &study.mesh,
                               .links = &study.links,
                               .strategy = s,
                               .bytes = study.bytes,
                               .network = network};
    need(mc_simulate(&q, &result));
    return (double)result.ps / 1e12;
}

static bool compare(void *context, const mc_strategy_t *strategy)
{
    char text[MC_STRATEGY_TEXT + 256], name[MC_STRATEGY_TEXT], mesh[MC_MESH_TEXT];
    mc_text_t at = mc_text(name, sizeof name);
    mc_strategy_t s = *strategy;
    (void)context;
    s.segments = study.segments;
    const double price = mc_strategy_seconds(&s, &study.mesh, &study.links, 0, study.bytes);
    study.found = mc_grown(study.found, study.n, &study.capacity, sizeof *study.found);
    mc_strategy_print(&s, &study.mesh, &at);
    snprintf(text, sizeof text, "%s of %.0f on %s, %s: %s", mc_moves[s.collective].name,
             study.bytes, mc_mesh_text(&study.mesh, mesh), study.links_text, name);
    study.found[study.n++] = (found_t){simulated(&s, NULL) / price, strdup(text)};
    return true;
}

static int by_ratio(const void *a, const void *b)
{
    const double x = ((const found_t *)a)->ratio, y = ((const found_t *)b)->ratio;
    return (x > y) - (x < y);
}

static double share(double within)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < study.n; i++)
        n += fabs(study.found[i].ratio - 1) <= within;
    return 100.0 * n / study.n;
}

static void print_share(const char *what)
{
    qsort(study.found, study.n, sizeof *study.found, by_ratio);
    printf("| %s | %u | %.1f %% | %.1f %% | %.1f %% | %.2f | %.2f | %.2f |\n", what, study.n,
           share(0.01), share(0.05), share(0.2), study.found[0].ratio,
           study.found[study.n / 2].ratio, study.found[study.n - 1].ratio);
    fflush(stdout);
}

static void ratios(int ends)
{
    static const char *const on[][2] = {{"x=8", "uniform"},
                                        {"box=4,gpu=4", "generic"},
                                        {"box=4,gpu=8", "dgx-h100"},
                                        {"box=3,gpu=5", "pcie-boxes"}};
    static const double sizes[] = {4096, 1 << 20, 1 << 28};
    printf("| mesh, links | segments | simulated | within 1 %% | 5 %% | 20 %% | least | median | "
           "most |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t m = 0; m < MC_COUNT(on); m++)
        for (study.segments = 1; study.segments <= 8; study.segments *= 8) {
            char what[128];
            study.n = 0;
            study.links_text = on[m][1];
            need(mc_mesh_parse(on[m][0], &study.mesh));
            need(mc_links_parse(on[m][1], &study.mesh, &study.links));
            for (size_t i = 0; i < MC_COUNT(sizes); i++) {
                study.bytes = sizes[i];
                for (int c = MESHCOLL_BCAST; c <= MESHCOLL_ALLTOALL; c++)
                    need(mc_strategy_each((meshcoll_collective_t)c, &study.mesh, MC_PATHS_COVER,
                                          compare, NULL));
            }
            snprintf(what, sizeof what, "%s, %s | %u", on[m][0], on[m][1], study.segments);
            print_share(what);
            for (uint32_t i = 0; i < study.n; i++)
                if (i < (uint32_t)ends || i + (uint32_t)ends >= study.n)
                    fprintf(stderr, "%.3f  %s\n", study.found[i].ratio, study.found[i].what);
            for (uint32_t i = 0; i < study.n; i++)
                free(study.found[i].what);
        }
}

/* What calibration at creation would measure on this network: the cost per byte of rings through all boxes, all at once. */
static mc_links_t calibrated(mc_network_t *network)
{
    mc_links_t links = study.links;
    mc_simulated_t result;
    mc_strategy_t rings;
    double span[2];
    need(mc_strategy_parse("allgather:ring(box) allgather:ring(gpu)", MESHCOLL_ALLGATHER,
                           &study.mesh, &rings));
    for (int mib = 1; mib <= 2; mib++) {
        const mc_simulation_t q = {.mesh = &study.mesh,
                                   .links = &study.links,
                                   .strategy = &rings,
                                   .bytes = (double)mib * (1 << 20) * study.mesh.size,
                                   .network = network};
        need(mc_simulate(&q, &result));
        span[mib - 1] = (double)(result.phase[0].last - result.phase[0].first) / 1e12;
    }
    links.dim[0].beta = (span[1] - span[0]) / (study.mesh.dim[0].extent - 1) / (1 << 20);
    return links;
}

/* The fastest of the first 1, 4 and 16 of the planner's list by simulation (plan --simulate N), and its first with
 * calibrated links, over the fastest of `most` of it and the named ones, less 1. */
enum { CALIBRATED = 3, CHOICES };
static const uint32_t among[CALIBRATED] = {1, 4, 16};

static void regret_of(meshcoll_collective_t c, mc_network_t *network, uint32_t most,
                      const mc_links_t *seen, double regrets[CHOICES])
{
    const mc_planner_query_t query = {.bytes = study.bytes, .max_segments = 256, .most = most};
    mc_ranking_t ranking;
    mc_ranked_t first;
    need(mc_planner_rank(c, &study.mesh, &study.links, &query, &ranking));
    need(mc_planner_best(c, &study.mesh, seen, &query, &first));
    double best = INFINITY, chosen = 0;
    for (uint32_t i = 0; i < ranking.n && i < most; i++) {
        best = fmin(best, simulated(&ranking.list[i].strategy, network));
        chosen = i == 0 ? best : chosen;
        for (int k = 0; k < CALIBRATED; k++)
            regrets[k] = i < among[k] ? best : regrets[k];
    }
    regrets[CALIBRATED] = simulated(&first.strategy, network);
    best = fmin(best, regrets[CALIBRATED]);
    for (int32_t i = 0; i < mc_named_count(); i++) {
        mc_strategy_t s;
        const mc_named_t *const named = mc_named_at(i);
        if (named->collective != c || mc_strategy_named(named->name, c, &study.mesh, &s))
            continue;
        for (s.segments = mc_strategy_sides(&s) == 2 ? 2 : 1; s.segments <= 16; s.segments *= 4)
            if (mc_strategy_seconds(&s, &study.mesh, &study.links, 0, study.bytes) < 4 * chosen)
                best = fmin(best, simulated(&s, network));
    }
    free(ranking.list);
    for (int k = 0; k < CHOICES; k++)
        regrets[k] = regrets[k] / best - 1;
}

static void regret(uint32_t most)
{
    static const char *const boxes[] = {"box=4,gpu=8", "box=16,gpu=8", "box=128,gpu=8"};
    static const struct {
        const char *name, *text;
    } networks[] = {{"rails", "tree=16:16:50GB/s;rails"},
                    {"no rails", "tree=16:16:50GB/s"},
                    {"ecmp", "tree=16:16:50GB/s;ecmp"},
                    {"2:1", "tree=16:8:50GB/s"}};
    static const meshcoll_collective_t all[] = {MESHCOLL_BCAST, MESHCOLL_ALLGATHER,
                                                MESHCOLL_REDUCE_SCATTER, MESHCOLL_ALLREDUCE};
    static const double sizes[] = {1 << 16, 1 << 20, 1 << 24, 1 << 28};
    printf("| network | boxes | mean | worst | mean, of 4 | of 16 | calibrated |\n"
           "|---|---|---|---|---|---|---|\n");
    for (size_t k = 0; k < MC_COUNT(networks); k++)
        for (size_t m = 0; m < MC_COUNT(boxes); m++) {
            double sum[CHOICES] = {0}, worst = 0;
            mc_network_t network;
            char where[96] = "";
            need(mc_mesh_parse(boxes[m], &study.mesh));
            need(mc_links_parse("dgx-h100", &study.mesh, &study.links));
            need(mc_network_parse(networks[k].text, &network));
            need(mc_network_fit_to(&study.mesh, &study.links, &network));
            const mc_links_t seen = calibrated(&network);
            for (size_t c = 0; c < MC_COUNT(all); c++)
                for (size_t i = 0; i < MC_COUNT(sizes); i++) {
                    study.bytes = sizes[i];
                    double r[CHOICES] = {0};
                    regret_of(all[c], &network, most, &seen, r);
                    for (int f = 0; f < CHOICES; f++)
                        sum[f] += 100 * r[f] / (double)(MC_COUNT(all) * MC_COUNT(sizes));
                    if (r[0] > worst) {
                        worst = r[0];
                        snprintf(where, sizeof where, "%s, %.0f KiB", mc_moves[all[c]].name,
                                 sizes[i] / 1024);
                    }
                }
            printf("| %s | %d | %.1f %% | %.1f %% (%s) | %.1f %% | %.1f %% | %.1f %% |\n",
                   networks[k].name, study.mesh.dim[0].extent, sum[0], 100 * worst, where, sum[1],
                   sum[2], sum[CALIBRATED]);
            fflush(stdout);
            mc_network_free(&network);
        }
}

int main(int argc, char **argv)
{
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    if (argc > 1 && strcmp(argv[1], "ratios") == 0)
        ratios(number);
    else if (argc > 1 && strcmp(argv[1], "regret") == 0)
        regret(number > 0 ? (uint32_t)number : 20);
    else {
        fprintf(stderr, "usage: meshcoll-bench-simulate ratios [ENDS] | regret [N]\n");
        return 2;
    }
    return 0;
}
