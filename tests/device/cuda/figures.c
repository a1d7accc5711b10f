/*
 * Figures that one card can show, beside what is asked of them (issue 18): the rate of sums beside that of copies;
 * an allreduce of a long and of a short vector by all ranks in one grid; the CPU time of an enqueued call. Each
 * allreduce is checked before it is timed. scripts/gpu-check.sh runs it on a card; the fake shows that it runs.
 */
#include "common/gpu.h"
#include "compose/strategy/strategy.h"
#include "gpu/cuda/driver.h"
#include "gpu/mesh/arena.h"
#include "gpu/program/program.h"
#include "runtime/call/request.h"

#include <meshcoll/env.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* FILL: in each byte, a number whose sums over up to 63 ranks are exact in float32. */
enum { RANKS = 8, LIMIT_S = 20, WARM = 3, FILL = 0x40 };
static const int32_t machine[RANKS]; /* all ranks are on one */
enum { KIB = 1 << 10, MIB = 1 << 20 };

static gpu_t gpu;
static mc_cu_module_t module;
static int missed, shown;
static size_t shrink = 1; /* vectors are that many times shorter */

static void need(int status)
{
    if (status == MESHCOLL_OK)
        return;
    printf("%s\n", meshcoll_last_error());
    exit(1);
}

static void need_driver(mc_cu_result_t result, const char *what)
{
    need(mc_cuda_status(result, what));
}

static void need_good(bool good, const char *what)
{
    if (good)
        return;
    printf("%s\n", what);
    exit(1);
}

/* One line that scripts/gpu-check.sh puts into its table. */
static void show(const char *figure, double reached, double asked, bool least, const char *unit,
                 const char *how)
{
    const bool good = least ? reached >= asked : reached <= asked;
    shown++;
    missed += !good;
    printf("figure: %-44s reached %.4g %s, asked %s %.4g: %s (%s)\n", figure, reached, unit,
           least ? "at least" : "at most", asked,
           shrink > 1 ? "tried only"
           : good     ? "holds"
                      : "MISSED",
           how);
}

/* Memory -------------------------------------------------------------------------------------------- */

static mc_cu_address_t take(size_t bytes, unsigned char value)
{
    mc_cu_address_t at = 0;
    need_driver(gpu.cuda->alloc(&at, bytes ? bytes : 1), "allocate memory");
    need_driver(gpu.cuda->fill(at, value, bytes ? bytes : 1, gpu.stream), "fill memory");
    return at;
}

static mc_cu_address_t take_copy(const void *from, size_t bytes)
{
    const mc_cu_address_t at = take(bytes, 0);
    if (bytes > 0)
        need_driver(gpu.cuda->copy_in(at, from, bytes, gpu.stream), "copy to the GPU");
    need(gpu_wait(&gpu));
    return at;
}

static void give(mc_cu_address_t at)
{
    need_driver(gpu.cuda->free(at), "free memory");
}

static void *pointer(mc_cu_address_t at)
{
    return (void *)(uintptr_t)at;
}

/* Launches ------------------------------------------------------------------------------------------ */

typedef struct {
    mc_cu_function_t kernel;
    unsigned grid;
    mc_device_launch_t launch;
} kernel_t;

static kernel_t kernel_of(mc_device_body_t body, unsigned grid, const mc_device_launch_t *launch)
{
    kernel_t k = {.grid = grid, .launch = *launch};
    char name[64];
    snprintf(name, sizeof name, "mc_walk_%s", mc_device_body_name(body));
    need_driver(gpu.cuda->module_function(&k.kernel, module, name), "find a kernel");
    return k;
}

static void launch(const kernel_t *k)
{
    mc_device_launch_t parameter = k->launch;
    void *parameters[] = {&parameter};
    need_driver(gpu.cuda->launch(k->kernel, k->grid, 1, 1, MC_DEVICE_THREADS, 1, 1, 0, gpu.stream,
                                 parameters, NULL),
                "launch a kernel");
}

/* Seconds of one of `n` launches in a row. */
static double time_launches(const kernel_t *k, int n)
{
    double seconds = 0;
    for (int i = 0; i < WARM; i++)
        launch(k);
    need(gpu_mark(&gpu, 0));
    for (int i = 0; i < n; i++)
        launch(k);
    need(gpu_mark(&gpu, 1));
    need(gpu_wait(&gpu));
    need(gpu_elapsed(&gpu, &seconds));
    return seconds / n;
}

static unsigned multiprocessors(void)
{
    mc_cu_device_t device = 0;
    int n = 0;
    need_driver(gpu.cuda->context_device(&device), "find its GPU");
    need_driver(gpu.cuda->device_attribute(&n, MC_CU_MULTIPROCESSORS, device), "count processors");
    return (unsigned)n;
}

/* Sums beside copies -------------------------------------------------------------------------------- */

static double time_copies(mc_cu_address_t to, mc_cu_address_t from, size_t bytes, int n)
{
    double seconds = 0;
    for (int i = 0; i < WARM; i++)
        need_driver(gpu.copy_within(to, from, bytes, gpu.stream), "copy");
    need(gpu_mark(&gpu, 0));
    for (int i = 0; i < n; i++)
        need_driver(gpu.copy_within(to, from, bytes, gpu.stream), "copy");
    need(gpu_mark(&gpu, 1));
    need(gpu_wait(&gpu));
    need(gpu_elapsed(&gpu, &seconds));
    return seconds / n;
}

/* A copy accesses each byte twice, a sum of two vectors into one of them three times. */
static void show_sums(size_t bytes)
{
    enum { TIMES = 10 };
    const uint32_t blocks = 4 * multiprocessors();
    const uint64_t each = (bytes / blocks / MC_DEVICE_WORD + 1) * MC_DEVICE_WORD;
    const mc_cu_address_t in = take(bytes, 0), out = take(bytes, 0);
    const mc_device_run_t run = {.op = MC_DEVICE_REDUCE,
                                 .from_buffer = MC_DEVICE_IN,
                                 .to_buffer = MC_DEVICE_OUT,
                                 .n = 1,
                                 .bytes = bytes,
                                 .slice = each};
    const mc_cu_address_t there = take_copy(&run, sizeof run), word = take(sizeof(uint32_t), 0),
                          report = take(blocks * sizeof(mc_device_report_t), 0);
    const mc_device_launch_t one = {.one = {.run = pointer(there),
                                            .n_runs = 1,
                                            .passes = 1,
                                            .blocks = blocks,
                                            .tracks = 1,
                                            .piece = (uint32_t)each,
                                            .ranks = 1,
                                            .buffer = {pointer(in), pointer(out), NULL},
                                            .abort_word = pointer(word),
                                            .limit = LIMIT_S * UINT64_C(1000000000),
                                            .report = pointer(report)}};
    const kernel_t k = kernel_of(mc_device_body(MESHCOLL_FLOAT32, MESHCOLL_SUM), blocks, &one);
    const double sum = 3 * (double)bytes / time_launches(&k, TIMES);
    const double copy = 2 * (double)bytes / time_copies(out, in, bytes, TIMES);
    char how[128];
    snprintf(how, sizeof how, "%.4g of %.4g GB/s", sum / 1e9, copy / 1e9);
    show("rate of sums / rate of copies", 100 * sum / copy, 90, true, "%", how);
    const mc_cu_address_t all[] = {report, word, there, out, in};
    for (size_t i = 0; i < MC_COUNT(all); i++)
        give(all[i]);
}

/* All ranks in one grid ----------------------------------------------------------------------------- */

typedef struct {
    mc_plan_t *plan;
    mc_binding_t binding;
    mc_device_program_t *program;
    mc_cu_address_t in, out, scratch, run, lane, report;
} rank_t;
typedef struct {
    int n;
    uint32_t blocks, slot_bytes;
    size_t bytes;
    mc_gpu_part_t part[RANKS];
    unsigned char reach[RANKS * RANKS];
    rank_t rank[RANKS];
    mc_cu_address_t calls, word;
} grid_t;

static void plan_ranks(grid_t *g, const mc_mesh_t *mesh, const mc_strategy_t *s)
{
    /* their values tell only that the call is not in place */
    static char in, out;
    const meshcoll_args_t args = {.collective = MESHCOLL_ALLREDUCE,
                                  .in = &in,
                                  .out = &out,
                                  .count = g->bytes / sizeof(float),
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_SUM};
    const mc_operands_t operands = mc_operands_of(&args);
    uint32_t widest = 1;
    for (int r = 0; r < g->n; r++) {
        need(mc_strategy_plan(s, mesh, r, 0, &g->rank[r].plan));
        const uint32_t own = mc_device_widest(g->rank[r].plan);
        widest = own > widest ? own : widest;
    }
    for (int r = 0; r < g->n; r++) {
        rank_t *const rank = &g->rank[r];
        need(mc_binding_init(&rank->binding, rank->plan));
        need(mc_binding_measure(&rank->binding, &operands));
        need(mc_device_lower(&rank->binding, widest, g->blocks, NULL, NULL, &rank->program));
    }
}

/* Ends of lanes, as ranks in processes of their own would have them. */
static mc_cu_address_t make_lanes(grid_t *g, int r)
{
    const mc_device_program_t *const p = g->rank[r].program;
    const mc_gpu_arena_t arena = {.layout = {.rank = r,
                                             .ranks = g->n,
                                             .blocks = g->blocks,
                                             .slot_bytes = g->slot_bytes,
                                             .machine = machine},
                                  .part = g->part,
                                  .reach = g->reach};
    const size_t n = (size_t)2 * p->n_peers * g->blocks;
    mc_device_lane_t *const lane = calloc(n + 1, sizeof *lane);
    need_good(lane, "out of memory for lanes");
    for (size_t i = 0; i < n; i++)
        lane[i] = mc_gpu_arena_lane(&arena, p->peer[i / g->blocks / 2], i / g->blocks % 2,
                                    (uint32_t)(i % g->blocks), false);
    const mc_cu_address_t at = take_copy(lane, n * sizeof *lane);
    free(lane);
    return at;
}

static mc_device_call_t make_call(grid_t *g, int r)
{
    rank_t *const rank = &g->rank[r];
    const mc_device_program_t *const p = rank->program;
    rank->in = take(g->bytes, FILL);
    rank->out = take(g->bytes, 0);
    rank->scratch = take(rank->binding.scratch_bytes, 0);
    rank->run = take_copy(p->run, p->n_runs * sizeof *p->run);
    rank->lane = make_lanes(g, r);
    rank->report = take(g->blocks * sizeof(mc_device_report_t), 0);
    mc_device_call_t call;
    need(mc_device_call(p, g->slot_bytes, false, &call));
    call.run = pointer(rank->run);
    call.buffer[MC_DEVICE_IN] = pointer(rank->in);
    call.buffer[MC_DEVICE_OUT] = pointer(rank->out);
    call.buffer[MC_DEVICE_SCRATCH] = pointer(rank->scratch);
    call.lane = pointer(rank->lane);
    call.abort_word = pointer(g->word);
    call.limit = LIMIT_S * UINT64_C(1000000000);
    call.report = pointer(rank->report);
    return call;
}

static kernel_t open_grid(grid_t *g, const char *strategy)
{
    char text[MC_MESH_TEXT];
    mc_mesh_t mesh;
    mc_strategy_t s;
    mc_device_call_t call[RANKS];
    snprintf(text, sizeof text, "gpu=%d", g->n);
    need(mc_mesh_parse(text, &mesh));
    need(mc_strategy_parse(strategy, MESHCOLL_ALLREDUCE, &mesh, &s));
    plan_ranks(g, &mesh, &s);
    g->word = take(sizeof(uint32_t), 0);
    memset(g->reach, 1, sizeof g->reach);
    for (int r = 0; r < g->n; r++) {
        const mc_gpu_layout_t layout = {.rank = r,
                                        .ranks = g->n,
                                        .blocks = g->blocks,
                                        .slot_bytes = g->slot_bytes,
                                        .machine = machine};
        g->part[r] = (mc_gpu_part_t){.device = take(mc_gpu_layout_bytes(&layout), 0)};
    }
    for (int r = 0; r < g->n; r++)
        call[r] = make_call(g, r);
    g->calls = take_copy(call, (size_t)g->n * sizeof *call);
    const mc_device_launch_t all = {.one = call[0], .many = pointer(g->calls)};
    return kernel_of(g->rank[0].program->body, g->blocks * (unsigned)g->n, &all);
}

static void close_grid(grid_t *g)
{
    for (int r = 0; r < g->n; r++) {
        rank_t *const rank = &g->rank[r];
        const mc_cu_address_t all[] = {rank->report, rank->lane, rank->run,        rank->scratch,
                                       rank->out,    rank->in,   g->part[r].device};
        for (size_t i = 0; i < MC_COUNT(all); i++)
            give(all[i]);
        mc_device_program_free(rank->program);
        mc_binding_free(&rank->binding);
        mc_plan_free(rank->plan);
    }
    give(g->calls);
    give(g->word);
}

/* Every rank put in the same number. */
static void check_grid(const grid_t *g, const char *strategy)
{
    uint32_t bits;
    float one, *const result = malloc(g->bytes);
    need_good(result, "out of memory for a result");
    memset(&bits, FILL, sizeof bits);
    memcpy(&one, &bits, sizeof one);
    for (int r = 0; r < g->n; r++) {
        size_t wrong = 0;
        need_driver(gpu.copy_out(result, g->rank[r].out, g->bytes, gpu.stream), "copy a result");
        need(gpu_wait(&gpu));
        for (size_t i = 0; i < g->bytes / sizeof *result; i++)
            wrong += result[i] != one * (float)g->n;
        if (wrong > 0)
            printf("%s of %zu bytes on %d ranks: rank %d has %zu wrong elements\n", strategy,
                   g->bytes, g->n, r, wrong);
        need_good(wrong == 0, "a wrong result: nothing was timed");
    }
    free(result);
}

static double time_allreduce(int n, size_t bytes, uint32_t blocks, uint32_t slot_bytes,
                             const char *strategy, int times)
{
    grid_t *const g = calloc(1, sizeof *g);
    need_good(g, "out of memory for a grid");
    g->n = n;
    g->bytes = bytes;
    g->blocks = blocks;
    g->slot_bytes = slot_bytes;
    const kernel_t k = open_grid(g, strategy);
    launch(&k);
    need(gpu_wait(&gpu));
    check_grid(g, strategy);
    const double seconds = time_launches(&k, times);
    close_grid(g);
    free(g);
    return seconds;
}

/* The fastest of some strategies and bytes of a slot. */
static void show_allreduce(const char *figure, int n, size_t bytes, uint32_t blocks, double asked,
                           int times)
{
    static const char *const strategies[] = {"reduce_scatter:fullmesh(gpu) allgather:fullmesh(gpu)",
                                             "reduce_scatter:ring(gpu) allgather:ring(gpu)",
                                             "allreduce:fullmesh(gpu)", "allreduce:doubling(gpu)"};
    static const uint32_t slots[] = {64 * KIB, 256 * KIB, MC_DEVICE_SLOT_BYTES};
    double best = INFINITY;
    char how[192] = "";
    for (size_t s = 0; s < MC_COUNT(strategies); s++)
        for (size_t k = 0; k < (bytes < MIB ? 1 : MC_COUNT(slots)); k++) {
            const double seconds = time_allreduce(n, bytes, blocks, slots[k], strategies[s], times);
            if (seconds >= best)
                continue;
            best = seconds;
            snprintf(how, sizeof how, "%s, %u blocks a rank, slots of %u KiB", strategies[s],
                     blocks, slots[k] / KIB);
        }
    show(figure, best * 1e6, asked, false, "us", how);
}

/* Enqueueing ---------------------------------------------------------------------------------------- */

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* On a mesh of this rank alone: what a call does on the host does not depend on their number. */
static void show_enqueue(size_t bytes)
{
    enum { TURNS = 20, CALLS = 20 };
    const mc_cu_address_t in = take(bytes, 0), out = take(bytes, 0);
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = pointer(in),
                                  .out = pointer(out),
                                  .count = bytes / sizeof(float),
                                  .datatype = MESHCOLL_FLOAT32,
                                  .op = MESHCOLL_SUM};
    meshcoll_t *mesh;
    double spent = 0;
    need(meshcoll_create_env(NULL, &mesh));
    for (int turn = -1; turn < TURNS; turn++) { /* the first one warms up */
        const double before = thread_seconds();
        for (int i = 0; i < CALLS; i++)
            need(meshcoll_enqueue(mesh, &args, gpu.stream));
        spent += turn < 0 ? 0 : thread_seconds() - before;
        need(gpu_wait(&gpu));
    }
    need(meshcoll_async_error(mesh));
    meshcoll_destroy(mesh);
    show("CPU time to enqueue a call", spent / (TURNS * CALLS) * 1e6, 6, false, "us",
         "an allreduce again and again");
    give(out);
    give(in);
}

/* figures [SHRINK]: vectors are that many times shorter, where only the program is tried. */
int main(int argc, char **argv)
{
    shrink = argc > 1 && atol(argv[1]) > 0 ? (size_t)atol(argv[1]) : 1;
    const size_t large = 256 * (size_t)MIB / shrink;
    const int times = shrink > 1 ? 2 : 20;
    if (gpu_open(0, 1, &gpu) != MESHCOLL_OK) {
        printf("skipped: %s\n", meshcoll_last_error());
        return 77;
    }
    need_driver(gpu.cuda->module_load(&module, mc_cuda_image()), "load the kernels");
    const unsigned all = multiprocessors();
    printf("%s, %u multiprocessors\n", gpu.name, all);
    show_sums(large);
    show_allreduce("allreduce of 256 MiB on 4 ranks of one process", 4, large, all / 4, 3500,
                   times);
    show_allreduce("allreduce of 8 KiB on 8 ranks", 8, 8 * KIB, 1, 15, 5 * times);
    show_enqueue(8 * KIB);
    need_driver(gpu.cuda->module_unload(module), "unload the kernels");
    gpu_close(&gpu);
    if (shrink > 1)
        printf("%d figures tried, with vectors %zu times shorter\n", shown, shrink);
    else
        printf("%d of %d figures hold\n", shown - missed, shown);
    return 0;
}
