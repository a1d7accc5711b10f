/*
 * The price of strategies against their simulation.
 *   meshcoll-bench-simulate ratios   every strategy of the cover on four meshes: the distribution of
 *                                    simulated / price, and the strategies at its ends
 *   meshcoll-bench-simulate regret   the planner's choice on dgx-h100 against the fastest of its cheapest
 *                                    strategies and the named ones, by simulation, on four networks
 *   meshcoll-bench-simulate network  the choice without and with the network, against the fastest of many orders
 *                                    of phases, on trees, tori and dragonflies
 * All print Markdown (docs/simulate.md).
 */
#include "compose/planner/planner.h"
#include "contention/contention.h"
#include "network/ends.h"
#include "simulate/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* With and without the network ------------------------------------------------------------------- */

/* A dragonfly of all groups joined to each other: 8 groups of 4 routers of 2 ends; or one whose groups are 2 leaves of 4
 * ends below 2 spines. */
static void write_dragonfly(FILE *file, bool spines)
{
    const int routers = spines ? 2 : 4, ends = spines ? 4 : 2;
    for (int g = 0; g < 8; g++)
        for (int r = 0; r < routers; r++) {
            for (int e = 0; e < ends; e++)
                fprintf(file, "%d r%d.%d\n", (g * routers + r) * ends + e, g, r);
            for (int other = spines ? 0 : r + 1; other < routers; other++)
                fprintf(file, "r%d.%d %c%d.%d\n", g, r, spines ? 's' : 'r', g, other);
        }
    for (int g = 0, at = 0; g < 8; g++)
        for (int to = g + 1; to < 8; to++, at++)
            fprintf(file, "%c%d.%d %c%d.%d 25GB/s\n", spines ? 's' : 'r', g, at % routers,
                    spines ? 's' : 'r', to, at / 2 % routers);
}

typedef struct {
    const char *mesh, *links, *network;
} place_t;

/* Sums over cells: regret of the choice without the network and with it; cells, and those whose price in one segment is
 * within a tenth. */
typedef struct {
    double before, after, worst_before, worst_after, longest;
    int cells, within;
} tally_t;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The least simulated time of the cheapest of each order of phases in a ranking, of up to `most`. */
static double best_shape(const mc_ranking_t *ranking, mc_network_t *network, uint32_t most)
{
    uint32_t n = 0, at[64];
    double best = INFINITY;
    for (uint32_t i = 0; i < ranking->n && n < most && n < MC_COUNT(at); i++) {
        bool seen = ranking->list[i].seconds > 3 * ranking->list[0].seconds;
        for (uint32_t k = 0; k < n && !seen; k++)
            seen = mc_strategy_alike(&ranking->list[i].strategy, &ranking->list[at[k]].strategy,
                                     false);
        if (seen)
            continue;
        at[n++] = i;
        best = fmin(best, simulated(&ranking->list[i].strategy, network));
    }
    return best;
}

static void rank_and_simulate(meshcoll_collective_t c, mc_network_t *network, uint32_t most,
                              double *first, double *best)
{
    const mc_planner_query_t query = {.bytes = study.bytes, .max_segments = 256};
    mc_ranking_t ranking;
    need(mc_planner_rank(c, &study.mesh, &study.links, &query, &ranking));
    *first = simulated(&ranking.list[0].strategy, network);
    *best = fmin(*best, best_shape(&ranking, network, most));
    free(ranking.list);
}

static void cell(const place_t *p, meshcoll_collective_t c, mc_network_t *network, uint32_t most,
                 tally_t *t)
{
    const mc_planner_query_t one = {.bytes = study.bytes, .max_segments = 1};
    const mc_planner_query_t query = {.bytes = study.bytes, .max_segments = 256};
    double before, after, best = INFINITY;
    mc_contention_t *contention;
    mc_ranked_t chosen;
    study.links.network = NULL;
    rank_and_simulate(c, network, most, &before, &best);
    const double start = seconds_now();
    need(mc_contention_create(&study.mesh, &study.links, network, NULL, &contention));
    study.links.network = mc_contention_prices(contention);
    need(mc_planner_best(c, &study.mesh, &study.links, &query, &chosen));
    const double planned = seconds_now() - start;
    rank_and_simulate(c, network, most, &after, &best);
    need(mc_planner_best(c, &study.mesh, &study.links, &one, &chosen));
    const double priced = chosen.seconds / simulated(&chosen.strategy, network);
    need(mc_contention_status(contention));
    study.links.network = NULL;
    mc_contention_free(contention);
    best = fmin(best, fmin(before, after));
    printf("| %s | %s | %s | %.0f KiB | %.1f %% | %.1f %% | %.2f | %.1f ms |\n", p->network,
           p->mesh, mc_moves[c].name, study.bytes / 1024, 100 * (before / best - 1),
           100 * (after / best - 1), priced, 1e3 * planned);
    fflush(stdout);
    t->before += before / best - 1;
    t->after += after / best - 1;
    t->worst_before = fmax(t->worst_before, before / best - 1);
    t->worst_after = fmax(t->worst_after, after / best - 1);
    t->longest = fmax(t->longest, planned);
    t->within += fabs(priced - 1) <= 0.1;
    t->cells++;
}

static void print_tally(const char *what, const tally_t *t)
{
    printf("| %s | %d cells | | | %.1f %%, worst %.0f %% | %.1f %%, worst %.0f %% | %.0f %% within "
           "10 %% | at most %.1f ms |\n",
           what, t->cells, 100 * t->before / t->cells, 100 * t->worst_before,
           100 * t->after / t->cells, 100 * t->worst_after, 100.0 * t->within / t->cells,
           1e3 * t->longest);
}

static void on_place(const place_t *p, size_t number, uint32_t most, tally_t *t)
{
    static const double sizes[] = {1 << 12, 1 << 20, 1 << 26, 1 << 30};
    mc_network_t network;
    char text[MC_NETWORK_TEXT], path[] = "/tmp/meshcoll-dragonfly.XXXXXX";
    const bool dragonfly = strncmp(p->network, "dragonfly", 9) == 0;
    FILE *const file = dragonfly ? fdopen(mkstemp(path), "w") : NULL;
    if (file) {
        write_dragonfly(file, strchr(p->network, '+') != NULL);
        fclose(file);
    }
    snprintf(text, sizeof text, dragonfly ? "graph=%s:50GB/s" : "%s",
             dragonfly ? path : p->network);
    need(mc_mesh_parse(p->mesh, &study.mesh));
    need(mc_links_parse(p->links, &study.mesh, &study.links));
    need(mc_network_parse(text, &network));
    if (dragonfly)
        remove(path);
    need(mc_network_fit_to(&study.mesh, &study.links, &network));
    for (size_t i = 0; i < MC_COUNT(sizes); i++) {
        study.bytes = sizes[i];
        if (study.mesh.size <= 1024 || i == 2)
            cell(p, (meshcoll_collective_t)((5 * i + 3 * number) % MESHCOLL_COLLECTIVES), &network,
                 study.mesh.size <= 1024 ? most : 2, t);
    }
    mc_network_free(&network);
}

static void network(uint32_t most)
{
    static const place_t fixed[] = {
        {"x=16", "uniform", "tree=4:1:1GB/s"},
        {"box=16,gpu=8", "dgx-h100", "tree=16:16:50GB/s"},
        {"box=16,gpu=8", "dgx-h100", "tree=16:8:50GB/s"},
        {"box=16,gpu=8", "dgx-h100", "tree=16:4:50GB/s"},
        {"box=32,gpu=8", "dgx-h100", "tree=32:16:50GB/s/4:2:50GB/s"},
        {"box=64,gpu=8", "dgx-h100", "tree=64:16:50GB/s/8:2:50GB/s"},
        {"box=32,gpu=8", "dgx-h100", "tree=8:4:50GB/s;rails"},
        {"pod=4,box=8,gpu=4", "dgx-h100", "tree=16:8:50GB/s/4:2:50GB/s"},
        {"x=8,y=8", "tpu-v4", "torus=8x8:50GB/s"},
        {"x=4,y=16", "tpu-v4", "torus=4x16:50GB/s"},
        {"x=4,y=4,z=4", "tpu-v4", "torus=4x4x4:50GB/s"},
        {"box=16,gpu=4", "dgx-h100", "torus=4x4:50GB/s"},
        {"box=32,gpu=2", "dgx-h100", "torus=4x4x2:50GB/s"},
        {"box=64,gpu=4", "dgx-h100,box=ports:1", "dragonfly"},
        {"box=64,gpu=4", "dgx-h100,box=ports:1", "dragonfly+"},
        {"box=128,gpu=8", "dgx-h100", "tree=16:8:50GB/s/64"},
        {"pod=8,box=160,gpu=8", "dgx-h100", "tree=16:8:50GB/s/80:16:50GB/s"}};
    static const place_t hashed[] = {{"box=16,gpu=8", "dgx-h100", "tree=16:8:50GB/s;ecmp:1"},
                                     {"box=16,gpu=8", "dgx-h100", "tree=16:8:50GB/s;ecmp:2"},
                                     {"box=16,gpu=8", "dgx-h100", "tree=16:8:50GB/s;ecmp:3"}};
    tally_t of_fixed = {0}, of_hashed = {0};
    printf("| network | mesh | collective | bytes | regret without | with | price / simulated | "
           "planned "
           "in |\n|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < MC_COUNT(fixed); i++)
        on_place(&fixed[i], i, most, &of_fixed);
    for (size_t i = 0; i < MC_COUNT(hashed); i++)
        on_place(&hashed[i], i, most, &of_hashed);
    print_tally("fixed routes", &of_fixed);
    print_tally("ecmp", &of_hashed);
}

int main(int argc, char **argv)
{
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    if (argc > 1 && strcmp(argv[1], "ratios") == 0)
        ratios(number);
    else if (argc > 1 && strcmp(argv[1], "regret") == 0)
        regret(number > 0 ? (uint32_t)number : 20);
    else if (argc > 1 && strcmp(argv[1], "network") == 0)
        network(number > 0 ? (uint32_t)number : 12);
    else {
        fprintf(stderr,
                "usage: meshcoll-bench-simulate ratios [ENDS] | regret [N] | network [N]\n");
        return 2;
    }
    return 0;
}
