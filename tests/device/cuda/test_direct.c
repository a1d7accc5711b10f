/*
 * Messages between machines in memory of the GPU, which a fake of UCX moves as a network card would
 * (fake_ucx.c). Other tests between machines run with these settings, too: cmake/TestsDevice.cmake.
 */
#include "rig.h"

#include <string.h>

/* What the ranks find: the setting, what UCX can, and what GPUs say of network cards. */
static void surround(const char *setting, bool ucx, const char *card)
{
    setenv("MESHCOLL_GPU_DIRECT", setting, 1);
    if (ucx)
        setenv("FAKE_UCX_CUDA", "1", 1);
    else
        unsetenv("FAKE_UCX_CUDA");
    if (card)
        setenv("FAKE_DIRECT", card, 1);
    else
        unsetenv("FAKE_DIRECT");
}

static bool run(const rig_t *rig, void (*rank)(meshcoll_t *mesh))
{
    return rig_can_part() ? rig_run(rig, rank) : rig_skip(RIG_CANNOT_PART);
}

static const mc_case_t sum = {
    .collective = MESHCOLL_ALLREDUCE, .count = 3000, .datatype = MESHCOLL_INT32};

/* In the report, where rank 0 reads it. */
static void need_told(meshcoll_t *mesh, const char *words)
{
    char *text;
    NEED(meshcoll_explain(mesh, &text) == MESHCOLL_OK);
    const bool told = strstr(text, words) != NULL;
    if (!told)
        printf("rank %d: expected \"%s\" in:\n%s", rig_rank, words, text);
    free(text);
    NEED(told);
}

/* All collectives. Messages lie in memory of GPUs, and before a kernel is told of one a flush has it there. */
static void rank_direct(meshcoll_t *mesh)
{
    rig_turns(mesh, 0, 2 * MESHCOLL_COLLECTIVES);
    NEED(fake_ucx_moved() > 0);
    NEED(fake_calls("cuFlushGPUDirectRDMAWrites") > 0);
}

bool test_far_direct(void)
{
    const rig_t rigs[] = {
        {.mesh = "box=2,gpu=2", .machines = "0011", .blocks = "2", .slot = "512", .tidy = true},
        {.mesh = "x=4", .machines = "0101", .blocks = "3", .slot = "4096", .tidy = true},
        {.mesh = "box=2", .machines = "01", .blocks = "4", .slot = "65536", .tidy = true}};
    bool good = true;
    surround("on", true, "flush");
    for (size_t i = 0; i < sizeof rigs / sizeof rigs[0] && good; i++)
        good = run(&rigs[i], rank_direct);
    return good;
}

/* Where the GPU orders what cards write, nothing is flushed. */
static void rank_ordered(meshcoll_t *mesh)
{
    rig_turns(mesh, 0, MESHCOLL_COLLECTIVES);
    NEED(fake_ucx_moved() > 0);
    NEED(fake_calls("cuFlushGPUDirectRDMAWrites") == 0);
    need_told(mesh, "messages of 1 peer lie in memory of GPUs\n");
}

bool test_far_direct_ordered(void)
{
    const rig_t rig = {
        .mesh = "box=2", .machines = "01", .blocks = "2", .slot = "1024", .explain = "1,/dev/null"};
    surround("on", true, "ordered");
    return run(&rig, rank_ordered);
}

/* Ranks 0 and 3 alone have them there: routes with such slots at both ends, at one, and at none. */
static void rank_one_end(meshcoll_t *mesh)
{
    const bool direct = rig_rank % 3 == 0;
    setenv("MESHCOLL_GPU_DIRECT", direct ? "on" : "off", 1);
    rig_turns(mesh, 0, 2 * MESHCOLL_COLLECTIVES);
    NEED((fake_ucx_moved() > 0) == direct);
}

bool test_far_direct_one_end(void)
{
    const rig_t rig = {
        .mesh = "box=2,gpu=2", .machines = "0011", .blocks = "3", .slot = "1024", .tidy = true};
    surround("off", true, "flush");
    return run(&rig, rank_one_end);
}

/* Where it is not asked for, or not sure, messages lie in memory of the host, and the report says why. */
static const char *why;
static void rank_cannot(meshcoll_t *mesh)
{
    char words[128];
    rig_turns(mesh, 0, MESHCOLL_COLLECTIVES);
    NEED(fake_ucx_moved() == 0);
    snprintf(words, sizeof words, "those of other machines, as %s\n", why);
    need_told(mesh, "messages of 1 peer lie in pinned memory of the host\n");
    need_told(mesh, words);
}

bool test_far_direct_cannot(void)
{
    static const struct {
        const char *setting;
        bool ucx;
        const char *card, *why;
    } tries[] = {
        {"", true, "flush", "MESHCOLL_GPU_DIRECT is off"},
        {"off", true, "flush", "MESHCOLL_GPU_DIRECT is off"},
        {"on", false, "flush", "UCX does not move memory of GPUs here"},
        {"on", true, NULL, "network cards cannot reach this GPU"},
        {"on", true, "unordered", "nothing tells that this GPU sees what a network card wrote"},
        {"on", true, "tables", "flags and data take two ways to this GPU, which nothing orders"}};
    const rig_t rig = {.mesh = "box=2",
                       .machines = "01",
                       .blocks = "2",
                       .slot = "1024",
                       .explain = "1,/dev/null",
                       .tidy = true};
    bool good = true;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0] && good; i++) {
        surround(tries[i].setting, tries[i].ucx, tries[i].card);
        why = tries[i].why;
        good = run(&rig, rank_cannot);
    }
    return good;
}

/* Of one rank, the GPU has no room for the slots of one direction: they lie in memory of the host. */
static void rank_full(meshcoll_t *mesh)
{
    const mc_case_t first = {.collective = MESHCOLL_BCAST, .count = 70, .datatype = MESHCOLL_INT32};
    NEED(rig_enqueue(mesh, &first, "bcast:mst(box)", NULL));
    rig_case_t r;
    rig_open(mesh, &sum, "allreduce:fullmesh(box)", &r);
    if (rig_rank == 0)
        fake_fail("cuMemAlloc_v2", 0, MC_CU_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 2; i++) {
        rig_fill(&r, NULL);
        NEED(meshcoll_enqueue(mesh, &r.args, NULL) == MESHCOLL_OK);
        NEED(rig_check(&r, NULL));
    }
    NEED(meshcoll_async_error(mesh) == MESHCOLL_OK);
    rig_close(&r);
    if (rig_rank == 0)
        need_told(mesh, "those of other machines, as the GPU's memory has no room for them\n");
    else
        NEED(fake_ucx_moved() > 0);
}

bool test_far_direct_full(void)
{
    const rig_t rig = {.mesh = "box=2",
                       .machines = "01",
                       .blocks = "2",
                       .slot = "1024",
                       .explain = "1,/dev/null",
                       .tidy = true};
    surround("on", true, "flush");
    return run(&rig, rank_full);
}

/* A flush that fails ends the mesh, on all ranks. */
static void rank_flush_fails(meshcoll_t *mesh)
{
    rig_case_t r;
    NEED(rig_enqueue(mesh, &sum, NULL, NULL));
    rig_open(mesh, &sum, NULL, &r);
    rig_fill(&r, NULL);
    rig_meet();
    if (rig_rank == 1)
        fake_fail("cuFlushGPUDirectRDMAWrites", 0, MC_CU_ERROR_INVALID_VALUE);
    NEED(meshcoll_enqueue(mesh, &r.args, NULL) <= 0);
    NEED(rig_await_error(mesh) == MESHCOLL_ERR_PEER);
    NEED(rig_says("rank 1: the GPU's driver could not wait for what network cards wrote: "));
    NEED(cuStreamSynchronize(NULL) == 0); /* kernels have given up */
    rig_close(&r);
}

bool test_far_direct_fails(void)
{
    const rig_t rig = {.mesh = "box=2", .machines = "01", .blocks = "2", .slot = "1024"};
    surround("on", true, "flush");
    return run(&rig, rank_flush_fails);
}

static void rank_setting(meshcoll_t *mesh)
{
    rig_case_t r;
    rig_open(mesh, &sum, NULL, &r);
    rig_fill(&r, NULL);
    if (rig_rank == 1)
        setenv("MESHCOLL_GPU_DIRECT", "maybe", 1);
    NEED(meshcoll_enqueue(mesh, &r.args, NULL) == MESHCOLL_ERR_PARSE);
    NEED(rig_says("rank 1: MESHCOLL_GPU_DIRECT: expected on or off, got 'maybe'"));
    setenv("MESHCOLL_GPU_DIRECT", "on", 1);
    NEED(meshcoll_enqueue(mesh, &r.args, NULL) == MESHCOLL_OK);
    NEED(rig_check(&r, NULL));
    rig_close(&r);
}

/* A setting that is wrong on one rank is told to all; the next call works. */
bool test_far_direct_setting(void)
{
    const rig_t rig = {.mesh = "box=2", .machines = "01", .blocks = "2", .slot = "1024"};
    surround("on", true, "flush");
    return run(&rig, rank_setting);
}
