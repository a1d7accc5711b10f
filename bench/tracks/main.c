/*
 * meshcoll-bench-tracks: what tracks gain (src/gpu/program/tracks.h), by a simulation of all ranks' programs: the
 * planner's strategies on boxes of GPUs, in program order and in tracks.
 */
#include "sim.h"

#include "compose/planner/planner.h"
#include "gpu/launch/price.h"
#include "runtime/call/request.h"
#include "runtime/choose/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: meshcoll-bench-tracks [OPTIONS]\n"
                            "\n"
                            "Simulates collectives on boxes of 8 GPUs with the links dgx-h100: "
                            "each rank's program in program order, in one\n"
                            "track, and with a track for each row of phases. Prints seconds of "
                            "both, and what the planner predicts. Nothing\n"
                            "is measured.\n"
                            "\n"
                            "  --arena MIB     for the slots of a rank: 256, as the library takes\n"
                            "  --blocks N      of a kernel: 32\n"
                            "  --gpu-slots     slots of messages to other machines lie in memory "
                            "of the GPU, not in pinned memory\n";

/* H100: of its memory (vendor), and over PCIe 5 x16 (32 GT/s a lane, less its headers). */
static const double memory_rate = 3.35e12, pcie_rate = 53e9;
static const char *const meshes[] = {"box=2,gpu=8", "box=4,gpu=8", "box=8,gpu=8"};
static const meshcoll_collective_t collectives[] = {MESHCOLL_ALLREDUCE, MESHCOLL_REDUCE_SCATTER,
                                                    MESHCOLL_ALLGATHER, MESHCOLL_BCAST};
static const double sizes[] = {1 << 20, 16 << 20, 256 << 20, 1 << 30};

typedef struct {
    uint32_t arena, blocks;
    double slots;
} setting_t;

typedef struct {
    mc_mesh_t mesh;
    mc_links_t links;
    mc_ranked_t choice;
    mc_plan_t *plan[SIM_RANKS];
    mc_binding_t binding[SIM_RANKS];
    uint32_t widest;
} call_t;

static void need(int status)
{
    if (!status)
        return;
    fprintf(stderr, "meshcoll-bench-tracks: %s\n", meshcoll_last_error());
    exit(1);
}

static void open_call(const char *mesh, meshcoll_collective_t collective, double bytes, call_t *c)
{
    static char in, out; /* not in place; nothing is moved */
    const mc_planner_query_t query = {.bytes = bytes, .max_segments = MC_MAX_SEGMENTS};
    need(mc_mesh_parse(mesh, &c->mesh));
    need(mc_links_parse("dgx-h100", &c->mesh, &c->links));
    need(mc_planner_best(collective, &c->mesh, &c->links, &query, &c->choice));
    const bool whole = collective == MESHCOLL_ALLREDUCE || collective == MESHCOLL_BCAST;
    const mc_operands_t operands = {.in = &in,
                                    .out = &out,
                                    .count = (size_t)bytes / sizeof(float) /
                                             (whole ? 1 : (size_t)c->mesh.size),
                                    .datatype = MESHCOLL_FLOAT32};
    c->widest = 1;
    for (int32_t r = 0; r < c->mesh.size; r++) {
        need(mc_strategy_plan(&c->choice.strategy, &c->mesh, r, 0, &c->plan[r]));
        need(mc_binding_init(&c->binding[r], c->plan[r]));
        need(mc_binding_measure(&c->binding[r], &operands));
        const uint32_t own = mc_device_widest(c->plan[r]);
        c->widest = own > c->widest ? own : c->widest;
    }
}

static void close_call(call_t *c)
{
    for (int32_t r = 0; r < c->mesh.size; r++) {
        mc_binding_free(&c->binding[r]);
        mc_plan_free(c->plan[r]);
    }
}

/* As src/gpu/mesh/open.c: slots of the peers of the machine, and of those on a line. */
static uint32_t slot_bytes(const setting_t *s, const mc_mesh_t *mesh)
{
    const uint32_t peers = (uint32_t)(mesh->dim[1].extent - 1 + mesh->dim[0].extent - 1);
    const uint32_t share = s->arena / (peers * s->blocks * MC_DEVICE_SLOTS);
    return (share < MC_DEVICE_SLOT_BYTES ? share : MC_DEVICE_SLOT_BYTES) / MC_DEVICE_WORD *
           MC_DEVICE_WORD;
}

static double simulate(const call_t *c, const setting_t *s, const mc_device_tracks_t *tracks,
                       uint32_t *passes)
{
    sim_t sim = {.mesh = &c->mesh, .links = &c->links, .memory = memory_rate, .slots = s->slots};
    mc_device_program_t *program[SIM_RANKS];
    for (int32_t r = 0; r < c->mesh.size; r++) {
        mc_device_call_t call;
        need(mc_device_lower(&c->binding[r], c->widest, s->blocks, tracks, NULL, &program[r]));
        need(mc_device_call(program[r], slot_bytes(s, &c->mesh), false, &call));
        sim.passes = call.passes > sim.passes ? call.passes : sim.passes;
        sim.program[r] = program[r];
    }
    const double seconds = sim_run(&sim);
    for (int32_t r = 0; r < c->mesh.size; r++)
        mc_device_program_free(program[r]);
    *passes = sim.passes;
    return seconds;
}

/* Would the library take them? */
static bool pays(const call_t *c, const setting_t *s, const mc_device_tracks_t *tracks,
                 double bytes)
{
    const mc_gpu_layout_t layout = {.blocks = s->blocks, .slot_bytes = slot_bytes(s, &c->mesh)};
    mc_gpu_load_t load = {0};
    for (int32_t r = 0; r < c->mesh.size; r++)
        mc_gpu_load_add(&load, tracks, &c->links, c->plan[r]);
    return mc_gpu_tracks_pay(tracks, &load, &layout, bytes / c->plan[0]->n_chunks,
                             c->choice.strategy.segments);
}

static void show(const char *mesh, meshcoll_collective_t collective, double bytes,
                 const setting_t *s)
{
    static call_t c;
    char text[MC_STRATEGY_TEXT];
    mc_text_t t = mc_text(text, sizeof text);
    uint32_t passes[2];
    open_call(mesh, collective, bytes, &c);
    mc_strategy_print(&c.choice.strategy, &c.mesh, &t);
    const mc_device_tracks_t tracks = mc_gpu_tracks(&c.choice.strategy, &c.mesh, s->blocks);
    const bool taken = tracks.n > 1 && pays(&c, s, &tracks, bytes);
    const double one = simulate(&c, s, NULL, &passes[0]);
    const double several = simulate(&c, s, &tracks, &passes[1]);
    printf("%-12s %-14s %5.0f %6u %10.3f %6u %10.3f %6.2f %5s %10.3f  %s\n", mesh,
           meshcoll_collective_name(collective), bytes / (1 << 20), passes[0], 1e3 * one, passes[1],
           1e3 * several, several / one, taken ? "yes" : "no", 1e3 * c.choice.seconds, text);
    if (one < 0 || several < 0)
        exit(1);
    close_call(&c);
}

int main(int argc, char **argv)
{
    setting_t s = {.arena = 256 << 20, .blocks = 32, .slots = pcie_rate};
    for (int i = 1; i < argc; i++) {
        const char *const more = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--gpu-slots") == 0) {
            s.slots = memory_rate;
        } else if (strcmp(argv[i], "--arena") == 0 && atoi(more) > 0 && atoi(more) < 4096) {
            s.arena = (uint32_t)atoi(argv[++i]) << 20;
        } else if (strcmp(argv[i], "--blocks") == 0 && atoi(more) > 0) {
            s.blocks = (uint32_t)atoi(argv[++i]);
        } else {
            fputs(usage, strcmp(argv[i], "--help") ? stderr : stdout);
            return strcmp(argv[i], "--help") ? 2 : 0;
        }
    }
    printf("%-12s %-14s %5s %6s %10s %6s %10s %6s %5s %10s\n", "mesh", "collective", "MiB",
           "passes", "one/ms", "passes", "tracks/ms", "ratio", "taken", "model/ms");
    for (size_t m = 0; m < MC_COUNT(meshes); m++)
        for (size_t k = 0; k < MC_COUNT(collectives); k++)
            for (size_t i = 0; i < MC_COUNT(sizes); i++)
                show(meshes[m], collectives[k], sizes[i], &s);
    return 0;
}
