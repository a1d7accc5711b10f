/*
 * The stream executor, by processes that share GPUs of the fake: what the tests of kernels, run with a number of
 * GPUs, do not show.
 */
#include "rig.h"

#include "gpu/program/format.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* An allreduce of so many int32, at `at`. */
static meshcoll_args_t call_of(mc_cu_address_t at, size_t count)
{
    return (meshcoll_args_t){.size = sizeof(meshcoll_args_t),
                             .collective = MESHCOLL_ALLREDUCE,
                             .in = (void *)(uintptr_t)at,
                             .out = (void *)(uintptr_t)at,
                             .count = count,
                             .datatype = MESHCOLL_INT32};
}

static mc_cu_address_t some_memory(size_t count)
{
    mc_cu_address_t at;
    NEED(cuMemAlloc_v2(&at, count * sizeof(int32_t)) == 0);
    return at;
}

/* Results ----------------------------------------------------------------------------------------- */

static void rank_streams(meshcoll_t *mesh)
{
    rig_turns(mesh, 0, 6 * MESHCOLL_COLLECTIVES);
    NEED(fake_calls("cuStreamBatchMemOp_v2") > 0);
}

/* Two to six ranks on one GPU and on two, a line, two dimensions, unequal boxes; one pass and many. */
bool test_streams(void)
{
    const rig_t rigs[] = {
        {.mesh = "gpu=2", .gpus = 1, .tidy = true},
        {.mesh = "gpu=4", .gpus = 1, .blocks = "3", .slot = "4096", .tidy = true},
        {.mesh = "box=2,gpu=3", .gpus = 2, .blocks = "2", .slot = "16384", .tidy = true},
        {.mesh = "box=2+1", .gpus = 2, .blocks = "1", .slot = "2048"},
        {.mesh = "gpu=5", .gpus = 1},
        {.mesh = "gpu=1", .executor = "stream", .tidy = true}};
    bool good = true;
    for (size_t i = 0; i < sizeof rigs / sizeof rigs[0]; i++)
        good = rig_run(&rigs[i], rank_streams) && good;
    return good;
}

/* One rank is slower than the other: it finds slots full, or empty, and waits. Either is so in turn. */
static void rank_slow(meshcoll_t *mesh)
{
    static const meshcoll_collective_t collectives[] = {MESHCOLL_BCAST, MESHCOLL_REDUCE,
                                                        MESHCOLL_ALLREDUCE, MESHCOLL_ALLGATHER};
    for (int turn = 0; turn < 16; turn++) {
        const meshcoll_collective_t collective = collectives[turn % 4];
        const mc_case_t c = {.collective = collective,
                             .count = 1500,
                             .datatype = MESHCOLL_INT32,
                             .root = mc_case_is_rooted(collective) ? turn / 4 % 2 : 0};
        const unsigned sleep = turn / 8 == rig_rank ? 2000 : 0;
        fake_copies(sleep);
        fake_kernels(sleep, 1);
        NEED(rig_enqueue(mesh, &c, NULL, NULL));
    }
}

bool test_slow(void)
{
    const rig_t rig = {.mesh = "gpu=2", .gpus = 1, .blocks = "1", .slot = "512"};
    return rig_run(&rig, rank_slow);
}

/* The driver's queue is short: calls wait until there is room, all ranks alike, and end. */
static void rank_queue_full(meshcoll_t *mesh)
{
    fake_queue(10);
    rig_turns(mesh, 0, 2 * MESHCOLL_COLLECTIVES);
}

bool test_queue_full(void)
{
    const rig_t rig = {.mesh = "gpu=4", .gpus = 2, .blocks = "1", .slot = "1024"};
    return rig_run(&rig, rank_queue_full);
}

/* What goes wrong --------------------------------------------------------------------------------- */

enum { MANY = 5000 };

/* A rank that gave up goes on in its stream, and sends what is not what it should be. A rank that comes then is told,
 * even if it asks only when all is over. */
static void rank_gave_up(meshcoll_t *mesh)
{
    const mc_cu_address_t at = some_memory(MANY);
    const meshcoll_args_t a = call_of(at, MANY), first = call_of(at, 1);
    NEED(meshcoll_enqueue(mesh, &first, NULL) == MESHCOLL_OK && cuStreamSynchronize(NULL) == 0);
    rig_meet();
    if (rig_rank == 0) {
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK);
        NEED(cuStreamSynchronize(NULL) == 0);
    }
    rig_meet();
    if (rig_rank == 1) {
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK);
        NEED(cuStreamSynchronize(NULL) == 0);
        NEED(meshcoll_async_error(mesh) == MESHCOLL_ERR_TIMEOUT);
        NEED(rig_says("rank 0 waited longer than its limit"));
    }
    rig_meet();
    NEED(meshcoll_async_error(mesh) == MESHCOLL_ERR_TIMEOUT);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_TIMEOUT);
}

bool test_gave_up(void)
{
    const rig_t rig = {.mesh = "gpu=2", .gpus = 1, .blocks = "1", .slot = "512", .timeout = "0.3"};
    return rig_run(&rig, rank_gave_up);
}

/* A wait that is too long is reported with its step; calls whose waits are short are not, however many they are. */
static void rank_reported(meshcoll_t *mesh)
{
    const mc_cu_address_t at = some_memory(MANY);
    const meshcoll_args_t a = call_of(at, MANY);
    fake_copies(1000);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK && cuStreamSynchronize(NULL) == 0);
    NEED(meshcoll_async_error(mesh) == MESHCOLL_OK);
    rig_meet();
    if (rig_rank == 0) {
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK);
        NEED(rig_await_error(mesh) == MESHCOLL_ERR_TIMEOUT);
        NEED(rig_says("a call on device memory waited longer than 0.3 s: allreduce, waited longer "
                      "than its limit at step "));
        NEED(rig_says("rank 1), pass 0"));
    }
    rig_meet(); /* a rank that asks sooner is told less, and its sentence would be first */
    NEED(rig_await_error(mesh) == MESHCOLL_ERR_TIMEOUT);
}

/* A process that ends: the others' streams end. */
static void rank_killed(meshcoll_t *mesh)
{
    const meshcoll_args_t a = call_of(some_memory(MANY), MANY);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK && cuStreamSynchronize(NULL) == 0);
    rig_meet();
    if (rig_rank == 1)
        raise(SIGKILL);
    NEED(meshcoll_enqueue(mesh, &a, NULL) <= 0);
    NEED(rig_await_error(mesh) == MESHCOLL_ERR_PEER);
    NEED(cuStreamSynchronize(NULL) == 0);
}

bool test_killed(void)
{
    const rig_t late = {.mesh = "gpu=2", .gpus = 1, .blocks = "1", .slot = "512", .timeout = "0.3"};
    const rig_t dies = {.mesh = "gpu=3", .gpus = 1, .blocks = "1", .slot = "512", .dies = 2};
    return rig_run(&late, rank_reported) && rig_run(&dies, rank_killed);
}

/* Which executor ---------------------------------------------------------------------------------- */

static bool is_right(meshcoll_t *mesh)
{
    const mc_case_t c = {
        .collective = MESHCOLL_ALLREDUCE, .count = 100, .datatype = MESHCOLL_FLOAT32};
    return rig_enqueue(mesh, &c, NULL, NULL);
}

static void rank_by_kernel(meshcoll_t *mesh)
{
    NEED(is_right(mesh) && fake_calls("cuStreamBatchMemOp_v2") == 0);
}

/* One rank's word is enough. */
static void rank_by_stream(meshcoll_t *mesh)
{
    if (rig_rank == 1)
        setenv("MESHCOLL_GPU_EXECUTOR", "stream", 1);
    NEED(is_right(mesh) && fake_calls("cuStreamBatchMemOp_v2") > 0);
}

static void rank_misspelt(meshcoll_t *mesh)
{
    const meshcoll_args_t a = call_of(some_memory(1), 1);
    setenv("MESHCOLL_GPU_EXECUTOR", rig_rank == 1 ? "streams" : "stream", 1);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_PARSE);
    NEED(rig_says("rank 1: MESHCOLL_GPU_EXECUTOR: expected kernel or stream, got 'streams'"));
    setenv("MESHCOLL_GPU_EXECUTOR", "stream", 1);
    NEED(is_right(mesh));
}

bool test_executor(void)
{
    const rig_t own = {.mesh = "gpu=2"}, kernel = {.mesh = "gpu=2", .executor = "kernel"};
    return rig_run(&own, rank_by_kernel) && rig_run(&kernel, rank_by_kernel) &&
           rig_run(&own, rank_by_stream) && rig_run(&own, rank_misspelt);
}
