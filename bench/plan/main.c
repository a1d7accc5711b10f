/*
 * meshcoll-bench-plan: the time and memory that one rank needs to choose a strategy and to
 * generate and seal its plan, against targets. Also shows that plan and request grow with the
 * steps of the rank, not with the number of ranks.
 */
#include "choice.h"
#include "drawn.h"
#include "heap.h"

#include "compose/strategy/strategy.h"
#include "runtime/execute/executor.h"
#include "tools/common/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: meshcoll-bench-plan [OPTIONS]\n"
                            "\n"
                            "Generates and seals one rank's plan of an allreduce on large meshes; "
                            "prints median time, size of\n"
                            "the plan and peak heap, and the memory of a request for it. Then "
                            "chooses strategies from\n"
                            "cold, for every collective.\n"
                            "\n";

static const char ring_3d[] =
    "reduce_scatter:ring(z) reduce_scatter:ring(y) reduce_scatter:ring(x) "
    "allgather:ring(x) allgather:ring(y) allgather:ring(z)";
static const char ring_2d[] = "reduce_scatter:ring(y) reduce_scatter:ring(x) "
                              "allgather:ring(x) allgather:ring(y)";
static const char ring_1d[] = "reduce_scatter:ring(x) allgather:ring(x)";
static const char mst_1d[] = "reduce:mst(x) bcast:mst(x)";

/* Targets: 0 is none. */
typedef struct {
    const char *mesh, *strategy;
    double seconds;
    size_t bytes;
    bool large;
} case_t;

static const case_t targets[] = {
    {"x=22,y=22,z=22", ring_3d, 0.5e-3, 16 << 10, false},
    {"x=10000", ring_1d, 0, 2 << 20, false},
};

static const case_t growth[] = {
    {"x=8,y=8,z=8", ring_3d, 0, 0, false},
    {"x=16,y=16,z=16", ring_3d, 0, 0, false},
    {"x=32,y=32,z=32", ring_3d, 0, 0, false},
    {"x=64,y=64,z=64", ring_3d, 0, 0, true},
    {"x=128,y=128,z=128", ring_3d, 0, 0, true},
    {"x=32,y=32", ring_2d, 0, 0, false},
    {"x=128,y=128", ring_2d, 0, 0, false},
    {"x=512,y=512", ring_2d, 0, 0, true},
    {"x=512", ring_1d, 0, 0, false},
    {"x=4096", ring_1d, 0, 0, false},
    {"x=32768", ring_1d, 0, 0, true},
    {"x=512", mst_1d, 0, 0, false},
    {"x=32768", mst_1d, 0, 0, false},
    {"x=262144", mst_1d, 0, 0, true},
};

typedef struct {
    int32_t ranks;
    uint32_t steps, edges;
    size_t bytes, peak, request; /* of the plan; while it was made; of binding and executor */
    double seconds;              /* median */
} result_t;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int plan_once(const mc_strategy_t *strategy, const mc_mesh_t *mesh, result_t *result)
{
    const int32_t rank = mesh->size / 2; /* sends and receives in a tree too */
    mc_plan_t *plan;
    const double begin = mc_now();
    const int status = mc_strategy_plan(strategy, mesh, rank, 0, &plan);
    result->seconds = mc_now() - begin;
    if (status != MESHCOLL_OK)
        return status;
    result->steps = plan->n_steps;
    result->edges = plan->n_edges;
    result->bytes = plan->bytes;
    mc_plan_free(plan);
    return MESHCOLL_OK;
}

/* Creates binding and executor: where the bytes of a plan lie, and the state of each step. */
static int bind_once(const mc_strategy_t *strategy, const mc_mesh_t *mesh, result_t *result)
{
    mc_plan_t *plan;
    mc_binding_t binding = {0};
    mc_executor_t executor = {0};
    int status = mc_strategy_plan(strategy, mesh, mesh->size / 2, 0, &plan);
    if (status != MESHCOLL_OK)
        return status;
    const size_t count = (size_t)mesh->size, peers = (size_t)plan->n_peers + 1;
    mc_peer_t **const peer = calloc(peers, sizeof *peer);
    uint64_t **const sent = calloc(peers, sizeof *sent);
    float *const buffer = calloc(2 * count, sizeof *buffer);
    char *scratch = NULL;
    mc_peer_t nobody = {0};
    const mc_wiring_t wiring = {.peer = peer, .bytes_sent = sent};
    const mc_operands_t operands = {.in = buffer,
                                    .out = buffer + count,
                                    .count = count,
                                    .datatype = MESHCOLL_FLOAT32,
                                    .op = MESHCOLL_SUM};
    if (!peer || !sent || !buffer)
        status = mc_fail_memory("a request");
    for (size_t i = 0; peer && i < peers; i++)
        peer[i] = &nobody;
    heap_begin();
    if (!status)
        status = mc_binding_init(&binding, plan);
    if (!status)
        status = mc_executor_init(&executor, plan, &wiring);
    if (!status) {
        mc_binding_measure(&binding, &operands);
        scratch = calloc(1, binding.scratch_bytes + 1);
        status = scratch ? mc_binding_place(&binding, scratch) : mc_fail_memory("scratch");
    }
    result->request = heap_end();
    free(scratch);
    mc_executor_free(&executor);
    mc_binding_free(&binding);
    free(buffer);
    free(sent);
    free(peer);
    mc_plan_free(plan);
    return status;
}

static int measure(const case_t *c, int repetitions, result_t *result)
{
    mc_mesh_t mesh;
    mc_strategy_t strategy;
    result_t r = {0};
    int status = mc_mesh_parse(c->mesh, &mesh);
    if (status == MESHCOLL_OK)
        status = mc_strategy_parse(c->strategy, MESHCOLL_ALLREDUCE, &mesh, &strategy);
    if (status != MESHCOLL_OK)
        return status;

    heap_begin();
    status = plan_once(&strategy, &mesh, &r);
    r.peak = heap_end();
    if (status == MESHCOLL_OK)
        status = bind_once(&strategy, &mesh, &r);
    double *const time = calloc((size_t)repetitions, sizeof *time);
    if (!time)
        return mc_fail_memory("the times");
    for (int i = 0; i < repetitions && status == MESHCOLL_OK; i++) {
        status = plan_once(&strategy, &mesh, &r);
        time[i] = r.seconds;
    }
    qsort(time, (size_t)repetitions, sizeof *time, compare);
    r.seconds = time[repetitions / 2];
    r.ranks = mesh.size;
    free(time);
    *result = r;
    return status;
}

static void print_head(const char *what)
{
    printf("\n%s\n%10s %-18s %8s %8s %12s %12s %12s %12s %10s\n", what, "ranks", "mesh", "steps",
           "edges", "median us", "plan B", "peak heap B", "request B", "ns/step");
}

static void print_row(const case_t *c, const result_t *r)
{
    char peak[32] = "-", request[32] = "-";
    if (heap_counts()) {
        snprintf(peak, sizeof peak, "%zu", r->peak);
        snprintf(request, sizeof request, "%zu", r->request);
    }
    printf("%10d %-18s %8u %8u %12.1f %12zu %12s %12s %10.0f\n", r->ranks, c->mesh, r->steps,
           r->edges, r->seconds * 1e6, r->bytes, peak, request,
           r->steps ? r->seconds * 1e9 / r->steps : 0);
}

/* One line per target; true when met. */
static bool judge(const case_t *c, const result_t *r)
{
    const bool in_time = c->seconds == 0 || r->seconds < c->seconds;
    const bool in_size = c->bytes == 0 || r->bytes <= c->bytes;
    if (c->seconds > 0)
        printf("%s: %s in %.1f us, target below %.0f us\n", in_time ? "pass" : "MISS", c->mesh,
               r->seconds * 1e6, c->seconds * 1e6);
    if (c->bytes > 0)
        printf("%s: %s in %zu bytes, target at most %zu\n", in_size ? "pass" : "MISS", c->mesh,
               r->bytes, c->bytes);
    return in_time && in_size;
}

static int run_targets(int repetitions, bool *met)
{
    result_t result[MC_COUNT(targets)];
    print_head("targets: allreduce, ring reduce-scatter and allgather along every dimension");
    for (size_t i = 0; i < MC_COUNT(targets); i++) {
        const int status = measure(&targets[i], repetitions, &result[i]);
        if (status != MESHCOLL_OK)
            return status;
        print_row(&targets[i], &result[i]);
    }
    *met = true;
    for (size_t i = 0; i < MC_COUNT(targets); i++)
        *met = judge(&targets[i], &result[i]) && *met;
    return MESHCOLL_OK;
}

static int run_growth(int repetitions, bool quick)
{
    const char *title = NULL;
    for (size_t i = 0; i < MC_COUNT(growth); i++) {
        result_t result;
        if (quick && growth[i].large)
            continue;
        const int status = measure(&growth[i], repetitions, &result);
        if (status != MESHCOLL_OK)
            return status;
        if (growth[i].strategy != title)
            print_head(growth[i].strategy);
        title = growth[i].strategy;
        print_row(&growth[i], &result);
        fflush(stdout);
    }
    return MESHCOLL_OK;
}

static int run_drawn(int repetitions, bool strict)
{
    bool met = false;
    printf("meshcoll-bench-plan %s: choices from cold, the least of %d\n", meshcoll_version(),
           repetitions);
    if (drawn_run(repetitions, &met) != MESHCOLL_OK) {
        fprintf(stderr, "meshcoll-bench-plan: %s\n", meshcoll_last_error());
        return 1;
    }
    return strict && !met;
}

typedef struct {
    int32_t repetitions; /* 0: as many as the mode has */
    bool quick, strict, drawn;
} options_t;

/* Go on? Otherwise *exit is the exit status. */
static bool read_options(int argc, char **argv, options_t *o, int *exit)
{
    const mc_option_t table[] = {
        {.name = "repetitions",
         .letter = 'n',
         .value = "N",
         .help = "per row: 101; with --quick and --drawn 5",
         .number = &o->repetitions,
         .least = 1,
         .most = 1000000},
        MC_OPTION_FLAG("quick", "no larger mesh than the targets need", &o->quick),
        MC_OPTION_FLAG("strict", "exit status 1 when a target is missed", &o->strict),
        MC_OPTION_FLAG("drawn", "instead: choices from cold on links drawn at random", &o->drawn),
        {0},
    };
    mc_arguments_t none = {0};
    bool help;
    *exit = mc_options_read(table, argc, argv, &none, &help) ? 2 : 0;
    if (*exit)
        fprintf(stderr, "meshcoll-bench-plan: %s\n", meshcoll_last_error());
    if (*exit || !help)
        return *exit == 0;
    fputs(usage, stdout);
    mc_options_print(table, stdout);
    return false;
}

int main(int argc, char **argv)
{
    options_t o = {0};
    bool met = false, in_time = false;
    int exit;
    if (!read_options(argc, argv, &o, &exit))
        return exit;
    if (o.drawn)
        return run_drawn(o.repetitions ? o.repetitions : 5, o.strict);
    const int repetitions = o.repetitions ? o.repetitions : o.quick ? 5 : 101;

    printf("meshcoll-bench-plan %s: one rank's plan, generated and sealed; medians of %d\n",
           meshcoll_version(), repetitions);
    if (run_targets(repetitions, &met) != MESHCOLL_OK ||
        run_growth(repetitions, o.quick) != MESHCOLL_OK ||
        choice_run(repetitions, &in_time) != MESHCOLL_OK) {
        fprintf(stderr, "meshcoll-bench-plan: %s\n", meshcoll_last_error());
        return 1;
    }
    return o.strict && !(met && in_time);
}
