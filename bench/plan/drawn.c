#include "drawn.h"

#include "compose/algorithms/registry.h"
#include "compose/planner/planner.h"
#include "runtime/choose/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What tune found on this machine's labs and boxes (21 and 22 November 2026). */
enum { KINDS = 3, OF_A_KIND = 6 };
/* clang-format off */
static const char *const tuned[KINDS][OF_A_KIND] = {
    { /* between boxes */
        "alpha:6.79us;gap:0;cpu:3.58us;beta:41.9ns/B;gamma:192ps/B;burst:7394B;ports:1;pulled:no",
        "alpha:7.98us;gap:0;cpu:3.81us;beta:42.1ns/B;gamma:202ps/B;burst:7220B;ports:1;pulled:no",
        "alpha:13.3us;gap:0;cpu:5.46us;beta:42.8ns/B;gamma:216ps/B;burst:9810B;ports:2;pulled:no",
        "alpha:6.86us;gap:4.32us;cpu:3.53us;beta:43ns/B;burst:2306B;gamma:63.8ps/B;ports:1;pulled:no",
        "alpha:2.78us;gap:673ns;cpu:2.78us;beta:41.9ns/B;gamma:49.9ps/B;burst:820B;ports:1;pulled:no",
        "alpha:5.71us;gap:0;cpu:2.77us;beta:43.6ns/B;gamma:202ps/B;burst:15906B;ports:1;pulled:no",
    },
    { /* of a box's memory, beside a network */
        "alpha:4.47us;gap:0;cpu:563ns;beta:1.39ns/B;gamma:184ps/B;ports:1;pulled:yes",
        "alpha:4.3us;gap:0;cpu:559ns;beta:1.48ns/B;gamma:198ps/B;ports:1;pulled:yes",
        "alpha:22.2us;gap:0;cpu:1.3us;beta:1.16ns/B;gamma:214ps/B;ports:1;pulled:yes",
        "alpha:12us;gap:0;cpu:1.42us;beta:1.82ns/B;gamma:319ps/B;ports:1;pulled:yes",
        "alpha:3.87us;gap:2.52us;cpu:300ns;beta:1.57ns/B;gamma:203ps/B;ports:1;pulled:yes",
        "alpha:450ns;gap:0;cpu:181ns;beta:391ps/B;gamma:20GB/s;ports:1;pulled:yes",
    },
    { /* of a box's memory, alone */
        "alpha:442ns;gap:167ns;cpu:117ns;beta:364ps/B;gamma:46.9ps/B;ports:1;pulled:yes",
        "alpha:186ns;gap:81ns;cpu:38.8ns;beta:159ps/B;gamma:37ps/B;ports:1;pulled:yes",
        "alpha:162ns;gap:57.7ns;cpu:41.9ns;beta:141ps/B;gamma:35.5ps/B;ports:1;pulled:yes",
        "alpha:163ns;gap:43ns;cpu:45.5ns;beta:177ps/B;gamma:25.4ps/B;ports:1;pulled:yes",
        "alpha:508ns;gap:127ns;cpu:151ns;beta:409ps/B;gamma:51.1ps/B;ports:1;pulled:yes",
        "alpha:187ns;gap:80.1ns;cpu:37.1ns;beta:178ps/B;gamma:33.6ps/B;ports:1;pulled:yes",
    },
};
/* clang-format on */

/* Number of choices per mesh, and the time limit of one in seconds. */
typedef struct {
    const char *mesh;
    uint64_t choices;
    double target;
} drawn_case_t;

static const drawn_case_t cases[] = {
    {"x=32,y=32,z=32", 240, 20e-3},
    {"a=16,b=16,c=16,d=16", 60, 200e-3},
    {"a=16,b=2,c=8,d=4", 60, 200e-3},
};
static const double sizes[] = {8, 1024, 65536, 1e6, 8388608, 1073741824};

/* splitmix64 (Steele, Lea, Flood 2014): the same on every machine. */
static uint64_t draw(uint64_t *state, uint64_t below)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

typedef struct {
    uint64_t which;
    char kinds[MC_MAX_DIMS + 1]; /* of its dimensions: 0, 1, 2 as in `tuned` */
    mc_links_t links;
    meshcoll_collective_t collective;
    mc_planner_query_t query;
    double seconds;
} choice_t;

/* Outer dimensions are no nearer than inner ones. */
static int draw_choice(const mc_mesh_t *mesh, uint64_t which, choice_t *c)
{
    static const meshcoll_collective_t some[] = {MESHCOLL_BCAST, MESHCOLL_REDUCE,
                                                 MESHCOLL_ALLGATHER, MESHCOLL_REDUCE_SCATTER,
                                                 MESHCOLL_ALLTOALL};
    char buffer[MC_LINKS_TEXT];
    mc_text_t text = mc_text(buffer, sizeof buffer);
    uint64_t seed = which * 0xd1342543de82ef95u + 1122, *const state = &seed;
    uint64_t kind = 0;
    *c = (choice_t){.which = which};
    for (int32_t d = 0; d < mesh->ndims; d++) {
        const uint64_t drawn = draw(state, KINDS);
        kind = drawn > kind ? drawn : kind;
        c->kinds[d] = (char)('0' + kind);
        mc_text_add(&text, "%s%s=%s", d ? "," : "", mesh->dim[d].name,
                    tuned[kind][draw(state, OF_A_KIND)]);
    }
    const int status = mc_links_parse(buffer, mesh, &c->links);
    if (status)
        return status;
    c->collective = draw(state, 2) ? MESHCOLL_ALLREDUCE : some[draw(state, MC_COUNT(some))];
    c->query = (mc_planner_query_t){.root = draw(state, 2) ? mesh->size * 2 / 3 : 0,
                                    .bytes = sizes[draw(state, MC_COUNT(sizes))],
                                    .max_segments = MC_MAX_SEGMENTS};
    return MESHCOLL_OK;
}

/* Of this process: what else the machine does is left out. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The least of several. */
static int time_choice(const mc_mesh_t *mesh, int repetitions, choice_t *c)
{
    mc_ranked_t best;
    int status = MESHCOLL_OK;
    for (int i = 0; i < repetitions && !status; i++) {
        const double begin = cpu_seconds();
        status = mc_planner_best(c->collective, mesh, &c->links, &c->query, &best);
        const double seconds = cpu_seconds() - begin;
        c->seconds = i == 0 || seconds < c->seconds ? seconds : c->seconds;
    }
    return status;
}

static int by_seconds(const void *a, const void *b)
{
    const double x = ((const choice_t *)a)->seconds, y = ((const choice_t *)b)->seconds;
    return (x < y) - (x > y);
}

static void report(const drawn_case_t *on, const choice_t *choice, uint64_t n, bool *met)
{
    enum { SHOWN = 8 };
    uint64_t above = 0;
    while (above < n && choice[above].seconds >= on->target)
        above++;
    *met = *met && above == 0;
    printf("\n%s: %s, %d choices on links drawn from what tune found, CPU time: %d above %.0f us; "
           "median %.0f us\n%6s %-6s %-15s %12s %7s %10s\n",
           above ? "MISS" : "pass", on->mesh, (int)n, (int)above, on->target * 1e6,
           choice[n / 2].seconds * 1e6, "which", "links", "collective", "bytes", "root",
           "choice us");
    for (uint64_t i = 0; i < SHOWN && i < n; i++)
        printf("%6d %-6s %-15s %12.0f %7d %10.1f\n", (int)choice[i].which, choice[i].kinds,
               meshcoll_collective_name(choice[i].collective), choice[i].query.bytes,
               choice[i].query.root, choice[i].seconds * 1e6);
    fflush(stdout);
}

static int run_case(const drawn_case_t *on, int repetitions, bool *met)
{
    mc_mesh_t mesh;
    choice_t *const choice = calloc(on->choices, sizeof *choice);
    int status = choice ? mc_mesh_parse(on->mesh, &mesh) : mc_fail_memory("the choices");
    for (uint64_t k = 0; k < on->choices && !status; k++) {
        status = draw_choice(&mesh, k, &choice[k]);
        if (!status)
            status = time_choice(&mesh, repetitions, &choice[k]);
    }
    if (!status) {
        qsort(choice, on->choices, sizeof *choice, by_seconds);
        report(on, choice, on->choices, met);
    }
    free(choice);
    return status;
}

int drawn_run(int repetitions, bool *met)
{
    int status = MESHCOLL_OK;
    *met = true;
    for (size_t i = 0; i < MC_COUNT(cases) && !status; i++)
        status = run_case(&cases[i], repetitions, met);
    return status;
}
