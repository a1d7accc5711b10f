#include "choice.h"

#include "compose/planner/planner.h"
#include "runtime/choose/choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A preset with the extra fields that `meshcoll tune` measures, the same in all dimensions or
 * not. Without a preset: tuned links, between boxes and, in all other dimensions, of memory. */
typedef struct {
    const char *name, *preset;
    double gap, cpu;     /* 0: the preset's */
    bool pulled, differ; /* the latter: each dimension twice as fast as the one outside of it */
} links_case_t;

static const links_case_t all_links[] = {
    {"dgx-h100", "dgx-h100", 0, 0, false, false},
    {"lab", "lab", 0, 0, false, false},
    {"uniform", "uniform", 0, 0, false, false},
    {"measured", "uniform", 0.3e-6, 0, false, false},
    {"oversubscribed", "uniform", 0.3e-6, 0.2e-6, false, false},
    {"differ", "uniform", 0.3e-6, 0, false, true},
    {"pulled", "uniform", 0.3e-6, 0, true, false},
    {"tuned", NULL, 0, 0, false, false},
};
/* Of the lab, and of one box of 4 ranks on 2 cores at 16 MiB (22 November 2026). */
static const char tuned_network[] = "alpha:8.46us;cpu:3.55us;beta:41.9ns/B;gamma:194ps/B;"
                                    "burst:6555B;ports:1";
static const char tuned_memory[] =
    "alpha:672ns;gap:196ns;cpu:15.8us;beta:60ps/B;gamma:203ps/B;ports:1;pulled:yes";
static const double sizes[] = {8, 1024, 65536, 1e6, 16777216, 1073741824};

/* Targets: seconds of a choice at the slowest size and root. */
typedef struct {
    const char *mesh;
    double seconds;
} choice_case_t;

static const choice_case_t cases[] = {
    {"box=4,gpu=8", 2e-3},
    {"x=32,y=32,z=32", 20e-3},
    {"a=4,b=4,c=4,d=4", 200e-3},
    {"a=16,b=2,c=8,d=4", 200e-3},
};

typedef struct {
    double choice, plan; /* seconds, medians */
    uint32_t steps;
} cost_t;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct {
    const mc_mesh_t *mesh;
    const mc_links_t *links;
    meshcoll_collective_t collective;
    mc_planner_query_t query;
} ask_t;

/* Of this process: what else the machine does is left out. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int once(const ask_t *ask, double *choice, double *plan, uint32_t *steps)
{
    mc_ranked_t best;
    mc_plan_t *made;
    const double begin = cpu_seconds();
    int status = mc_planner_best(ask->collective, ask->mesh, ask->links, &ask->query, &best);
    const double between = cpu_seconds();
    if (!status)
        status = mc_strategy_plan(&best.strategy, ask->mesh, ask->mesh->size / 2, ask->query.root,
                                  &made);
    if (status)
        return status;
    *plan = cpu_seconds() - between;
    *choice = between - begin;
    *steps = made->n_steps;
    mc_plan_free(made);
    return MESHCOLL_OK;
}

static int measure(const ask_t *ask, int repetitions, cost_t *cost)
{
    double *const choice = calloc(2 * (size_t)repetitions, sizeof *choice);
    int status = choice ? MESHCOLL_OK : mc_fail_memory("the times");
    uint32_t steps = 0;
    for (int i = 0; i < repetitions && !status; i++)
        status = once(ask, &choice[i], &choice[repetitions + i], &steps);
    if (!status) {
        qsort(choice, (size_t)repetitions, sizeof *choice, compare);
        qsort(choice + repetitions, (size_t)repetitions, sizeof *choice, compare);
        *cost = (cost_t){choice[repetitions / 2], choice[repetitions + repetitions / 2], steps};
    }
    free(choice);
    return status;
}

/* The slowest choice and the slowest plan of all sizes and two roots. */
static int slowest(ask_t *ask, int repetitions, cost_t *worst)
{
    *worst = (cost_t){0, 0, 0};
    for (size_t i = 0; i < MC_COUNT(sizes); i++)
        for (int other = 0; other < 2; other++) {
            cost_t cost = {0, 0, 0};
            ask->query = (mc_planner_query_t){.root = other ? ask->mesh->size * 2 / 3 : 0,
                                              .bytes = sizes[i],
                                              .max_segments = MC_MAX_SEGMENTS};
            const int status = measure(ask, repetitions, &cost);
            if (status)
                return status;
            if (cost.choice > worst->choice)
                worst->choice = cost.choice;
            if (cost.plan > worst->plan) {
                worst->plan = cost.plan;
                worst->steps = cost.steps;
            }
        }
    return MESHCOLL_OK;
}

static int tuned_links(const mc_mesh_t *mesh, mc_links_t *links)
{
    char buffer[MC_LINKS_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    for (int32_t d = 0; d < mesh->ndims; d++)
        mc_text_add(&text, "%s%s=%s", d ? "," : "", mesh->dim[d].name,
                    d ? tuned_memory : tuned_network);
    return mc_links_parse(buffer, mesh, links);
}

static int links_of(const links_case_t *c, const mc_mesh_t *mesh, mc_links_t *links)
{
    if (!c->preset)
        return tuned_links(mesh, links);
    const int status = mc_links_parse(c->preset, mesh, links);
    for (int32_t d = 0; d < mesh->ndims && !status; d++) {
        mc_link_t *const link = &links->dim[d];
        mc_correction_t *const by = &links->correction[d];
        link->gap = c->gap > 0 ? c->gap : link->gap;
        by->cpu = c->cpu > 0 ? c->cpu : by->cpu;
        link->pulled = link->pulled || c->pulled;
        link->beta *= c->differ ? ldexp(1, 1 - d) : 1;
    }
    return status;
}

static int run_case(const choice_case_t *c, const links_case_t *on, int repetitions, bool *met)
{
    mc_mesh_t mesh;
    mc_links_t links;
    int status = mc_mesh_parse(c->mesh, &mesh);
    if (!status)
        status = links_of(on, &mesh, &links);
    for (int i = 0; i < MESHCOLL_COLLECTIVES && !status; i++) {
        ask_t ask = {.mesh = &mesh, .links = &links, .collective = (meshcoll_collective_t)i};
        cost_t worst;
        status = slowest(&ask, repetitions, &worst);
        const bool in_time = worst.choice < c->seconds;
        *met = *met && in_time;
        if (!status)
            printf("%-18s %-10s %-15s %10.1f %10.1f %8u%s\n", c->mesh, on->name,
                   meshcoll_collective_name(ask.collective), worst.choice * 1e6, worst.plan * 1e6,
                   worst.steps, in_time ? "" : "  MISS");
        fflush(stdout);
    }
    return status;
}

int choice_run(int repetitions, bool *met)
{
    /* twelve questions a row */
    const int turns = repetitions / 8 + 1;
    int status = MESHCOLL_OK;
    *met = true;
    printf(
        "\nchoices from cold, and plans of what is chosen: the slowest of %zu sizes and two roots, "
        "CPU time, medians of %d;\ntargets of a choice: below 2 ms in 2 dimensions, 20 ms in 3, "
        "200 ms in 4\n",
        MC_COUNT(sizes), turns);
    printf("%-18s %-10s %-15s %10s %10s %8s\n", "mesh", "links", "collective", "choice us",
           "plan us", "steps");
    for (size_t i = 0; i < MC_COUNT(cases); i++)
        for (size_t l = 0; l < MC_COUNT(all_links) && !status; l++)
            status = run_case(&cases[i], &all_links[l], turns, met);
    return status;
}
