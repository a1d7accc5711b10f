/* What goes wrong with calls on device memory, on one rank or all: each rank must learn it, and soon. */
#include "rig.h"

#include "base/base.h"
#include "gpu/cuda/driver.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Seconds in which every rank must know; processes of the suite share cores. */
#define SOON 10.0

int rig_await_error(meshcoll_t *mesh)
{
    const double end = mc_now() + SOON;
    int status = MESHCOLL_OK;
    while (!status && mc_now() < end) {
        usleep(1000);
        status = meshcoll_async_error(mesh);
    }
    return status;
}

/* Ranks that never come --------------------------------------------------------------------------- */

static void rank_late(meshcoll_t *mesh)
{
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(rig_works(mesh));
    rig_meet();
    if (rig_rank != 1) {
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK);
        NEED(rig_await_error(mesh) == MESHCOLL_ERR_TIMEOUT);
        /* a rank that waits in a stream may be told first that another one gave up */
        NEED(rig_says(rig_streams ? "waited longer than " : "allreduce, block "));
        NEED(cuStreamSynchronize(NULL) == 0); /* it has given up */
    } else {
        NEED(rig_await_error(mesh) == MESHCOLL_ERR_TIMEOUT);
    }
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_TIMEOUT);
}

bool test_late(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2", .timeout = "0.5"};
    return rig_run(&rig, rank_late);
}

/* With a limit of half an hour: the abort ends what waits, in a stream and in a blocking call. */
static void rank_aborted(meshcoll_t *mesh)
{
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(rig_works(mesh));
    rig_meet();
    const double begun = mc_now();
    if (rig_rank == 1) {
        usleep(200 * 1000);
        NEED(meshcoll_abort(mesh, "enough") == MESHCOLL_OK);
    } else if (rig_rank == 0) {
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK);
        NEED(cuStreamSynchronize(NULL) == 0);
        NEED(meshcoll_async_error(mesh) == MESHCOLL_ERR_ABORTED && rig_says("enough"));
    } else {
        NEED(meshcoll_allreduce(mesh, a.in, a.out, a.count, a.datatype, a.op) ==
             MESHCOLL_ERR_ABORTED);
        NEED(rig_says("enough"));
    }
    NEED(mc_now() - begun < SOON);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_ABORTED);
}

bool test_aborted(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2"};
    return rig_run(&rig, rank_aborted);
}

/* One rank is refused the call: the others' kernels end when these ask, in a stream or in a blocking call. */
static void rank_one_refused(meshcoll_t *mesh)
{
    meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(rig_works(mesh));
    rig_meet();
    const double begun = mc_now();
    if (rig_rank == 1) {
        a.in = NULL;
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_INVALID_ARG);
    } else if (rig_rank == 0) {
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK);
        NEED(rig_await_error(mesh) == MESHCOLL_ERR_PEER &&
             rig_says("rank 1 was refused this call"));
        NEED(cuStreamSynchronize(NULL) == 0);
    } else {
        NEED(meshcoll_allreduce(mesh, a.in, a.out, a.count, a.datatype, a.op) == MESHCOLL_ERR_PEER);
        NEED(rig_says("rank 1 was refused this call"));
    }
    NEED(mc_now() - begun < SOON);
}

bool test_refused(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2"};
    return rig_run(&rig, rank_one_refused);
}

/* A driver that fails ----------------------------------------------------------------------------- */

/* While the mesh makes its arena, on one rank: all are told by whom and of what, and the next call works. */
static void rank_cannot_open(meshcoll_t *mesh)
{
    static const char *const functions[] = {
        "cuModuleLoadData", /* once only */
        "cuMemAlloc_v2",    "cuStreamCreate",       "cuEventCreate",
        "cuMemHostAlloc",   "cuMemsetD8Async",      "cuDeviceGetUuid",
        "cuCtxGetDevice",   "cuMemHostRegister_v2", "cuMemHostGetDevicePointer_v2"};
    const size_t n = sizeof functions / sizeof functions[0] - (rig_streams ? 0 : 2);
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    for (size_t i = 0; i < n; i++) {
        const double begun = mc_now();
        if (rig_rank == 1)
            fake_fail(functions[i], 0, MC_CU_ERROR_OUT_OF_MEMORY);
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_DEVICE);
        NEED(rig_says("rank 1: the GPU's driver could not ") &&
             rig_says("CUDA_ERROR_OUT_OF_MEMORY"));
        NEED(mc_now() - begun < SOON);
        NEED(meshcoll_async_error(mesh) == MESHCOLL_OK);
    }
    /* a handle that cannot be opened is no failure */
    if (rig_rank == 1)
        fake_fail("cuIpcOpenMemHandle_v2", 0, MC_CU_ERROR_PEER_ACCESS_UNSUPPORTED);
    NEED(rig_works(mesh));
    NEED(rig_streams || fake_calls("cuMemHostRegister_v2") == (rig_rank == 2 ? 0 : 2));
}

/* A driver that shares no memory with other processes leaves messages to memory of the host. */
static void rank_cannot_share(meshcoll_t *mesh)
{
    if (rig_rank == 1)
        fake_fail("cuIpcGetMemHandle", 0, MC_CU_ERROR_OUT_OF_MEMORY);
    NEED(rig_works(mesh));
    NEED(rig_streams || fake_calls("cuMemHostRegister_v2") > 0);
}

bool test_cannot_share(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2"};
    return rig_run(&rig, rank_cannot_share);
}

bool test_cannot_open(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2"};
    return rig_run(&rig, rank_cannot_open);
}

/* Nothing of the driver's memory is left of a mesh whose calls on device memory were all refused, or failed, or were
 * those of a sub-mesh. */
static void rank_all_refused(meshcoll_t *mesh)
{
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_UNSUPPORTED);
    rig_call_free();
}

static void rank_all_failed(meshcoll_t *mesh)
{
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    if (rig_rank == 1)
        fake_fail("cuMemHostAlloc", 0, MC_CU_ERROR_OUT_OF_MEMORY);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_DEVICE);
    rig_call_free();
}

static void rank_of_a_part(meshcoll_t *mesh)
{
    meshcoll_t *part;
    NEED(meshcoll_split(mesh, "gpu", &part) == MESHCOLL_OK);
    NEED(rig_works(part));
    meshcoll_destroy(part);
}

/* Meshes with calls on device memory are destroyed in any order, and one while the others still use it. */
static void rank_any_order(meshcoll_t *mesh)
{
    meshcoll_t *part[3];
    const double begun = mc_now();
    for (int i = 0; i < 3; i++)
        NEED(meshcoll_split(mesh, "gpu", &part[i]) == MESHCOLL_OK && rig_works(part[i]));
    for (int i = 0; i < 2; i++)
        meshcoll_destroy(part[rig_rank == 1 ? 1 - i : i]);
    if (rig_rank == 0) {
        NEED(rig_works(mesh));
        meshcoll_destroy(part[2]);
    } else {
        meshcoll_destroy(part[2]);
        NEED(rig_works(mesh));
    }
    NEED(rig_works(mesh));
    NEED(mc_now() - begun < SOON);
}

bool test_any_order(void)
{
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2", .timeout = "20", .tidy = true};
    return rig_run(&rig, rank_any_order);
}

bool test_nothing_left(void)
{
    const rig_t refused = {.mesh = "gpu=2", .gpus = 1, .executor = "kernel", .tidy = true};
    const rig_t failed = {.mesh = "gpu=3", .blocks = "2", .tidy = true};
    const rig_t part = {.mesh = "box=2,gpu=2", .blocks = "2", .tidy = true};
    return rig_run(&refused, rank_all_refused) && rig_run(&failed, rank_all_failed) &&
           rig_run(&part, rank_of_a_part);
}

/* Once it is made, a rank that fails fails the mesh, as others' kernels wait for it. */
typedef struct {
    const char *function;
    int after; /* so many more of its calls */
} failing_t;
static failing_t failing;
static void cannot(meshcoll_t *mesh, meshcoll_args_t a)
{
    rig_meet();
    const double begun = mc_now();
    if (rig_rank == 1) {
        fake_fail(failing.function, failing.after, MC_CU_ERROR_OUT_OF_MEMORY);
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_DEVICE && rig_says("could not"));
        NEED(cuStreamSynchronize(NULL) == 0);
    } else {
        NEED(meshcoll_enqueue(mesh, &a, NULL) <= 0);
        NEED(rig_await_error(mesh) == MESHCOLL_ERR_PEER && rig_says("rank 1: the GPU's driver"));
        NEED(cuStreamSynchronize(NULL) == 0);
    }
    NEED(mc_now() - begun < SOON);
}

static void rank_cannot_launch(meshcoll_t *mesh)
{
    meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(rig_works(mesh));
    a.count = 99; /* another program */
    cannot(mesh, a);
}

bool test_cannot_launch(void)
{
    static const failing_t kernels[] = {{"cuLaunchKernel", 0},      {"cuMemAlloc_v2", 0},
                                        {"cuEventRecord", 0},       {"cuModuleGetFunction", 0},
                                        {"cuStreamIsCapturing", 0}, {"cuMemcpyHtoDAsync_v2", 0},
                                        {"cuCtxPushCurrent_v2", 0}};
    static const failing_t streams[] = {{"cuLaunchKernel", 0},        {"cuStreamBatchMemOp_v2", 0},
                                        {"cuStreamBatchMemOp_v2", 1}, {"cuStreamBatchMemOp_v2", 3},
                                        {"cuMemcpyAsync", 0},         {"cuMemcpyAsync", 1},
                                        {"cuEventRecord", 0},         {"cuModuleGetFunction", 0}};
    const rig_t rig = {.mesh = "gpu=3", .blocks = "2"};
    const size_t n =
        rig_streams ? sizeof streams / sizeof *streams : sizeof kernels / sizeof *kernels;
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        failing = rig_streams ? streams[i] : kernels[i];
        if (!rig_run(&rig, rank_cannot_launch)) {
            printf("where %s failed, after %d calls\n", failing.function, failing.after);
            good = false;
        }
    }
    return good;
}

/* Where there is no GPU to use -------------------------------------------------------------------- */

static const char *expected; /* in the sentence */

/* More ranks than GPUs: kernels are refused where any rank asks for them, in a stream and in a blocking call. By
 * default the stream executor runs the calls. */
static void rank_one_gpu(meshcoll_t *mesh)
{
    int32_t x = 1;
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    if (rig_rank == 1)
        setenv("MESHCOLL_GPU_EXECUTOR", "kernel", 1);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_UNSUPPORTED);
    NEED(rig_says(expected) && rig_says("MESHCOLL_GPU_EXECUTOR is kernel"));
    NEED(meshcoll_allreduce(mesh, a.in, a.out, a.count, a.datatype, a.op) ==
             MESHCOLL_ERR_UNSUPPORTED &&
         rig_says(expected));
    NEED(meshcoll_allreduce(mesh, &x, &x, 1, MESHCOLL_INT32, MESHCOLL_SUM) == MESHCOLL_OK);
    NEED(x == meshcoll_size(mesh));
    NEED(fake_calls("cuLaunchKernel") == 0 && fake_calls("cuStreamBatchMemOp_v2") == 0);
    unsetenv("MESHCOLL_GPU_EXECUTOR");
    NEED(rig_works(mesh) && fake_calls("cuStreamBatchMemOp_v2") > 0);
}

bool test_one_gpu(void)
{
    const rig_t all = {.mesh = "gpu=2", .gpus = 1, .executor = "kernel"};
    const rig_t one = {.mesh = "gpu=3", .gpus = 2};
    expected = "ranks 0 and 1 use the same GPU";
    const bool good = rig_run(&all, rank_one_gpu);
    expected = "ranks 0 and 2 use the same GPU";
    return rig_run(&one, rank_one_gpu) && good;
}

static void rank_refused(meshcoll_t *mesh)
{
    int32_t x = 1;
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_UNSUPPORTED && rig_says(expected));
    NEED(meshcoll_allreduce(mesh, &x, &x, 1, MESHCOLL_INT32, MESHCOLL_SUM) == MESHCOLL_OK);
    NEED(x == meshcoll_size(mesh));
}

static void rank_no_libcuda(meshcoll_t *mesh)
{
    NEED(!mc_cuda_there);
    rank_refused(mesh);
    NEED(fake_calls("cuPointerGetAttributes") == 0);
}

bool test_no_libcuda(void)
{
    const rig_t off = {.mesh = "gpu=2", .libcuda = "off"};
    const rig_t none = {.mesh = "gpu=2", .libcuda = "/nowhere/libcuda.so.1"};
    expected = "there is no CUDA driver here: MESHCOLL_LIBCUDA is \"off\"";
    const bool good = rig_run(&off, rank_no_libcuda);
    expected = "there is no CUDA driver here: /nowhere/libcuda.so.1";
    return rig_run(&none, rank_no_libcuda) && good;
}

/* A library without any of the functions; one that lacks a few is another sentence. */
bool test_old_libcuda(void)
{
    const rig_t rig = {.mesh = "gpu=2", .libcuda = "libm.so.6"};
    const rig_t lacks = {.mesh = "gpu=2", .libcuda = MC_OLD_CUDA};
    expected = "has no function cuPointerGetAttributes";
    const bool good = rig_run(&rig, rank_refused);
    expected = "the CUDA driver is too old: libcuda has no ";
    return rig_run(&lacks, rank_refused) && good;
}

bool test_no_kernels(void)
{
    const rig_t rig = {.mesh = "gpu=2"};
    expected = "built without nvcc";
    rig_image = NULL;
    return rig_run(&rig, rank_refused);
}

/* MESHCOLL_CHECK=1: ranks that ask for different calls learn it before anything moves. */
static void rank_disagree(meshcoll_t *mesh)
{
    meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    a.count = rig_rank == 1 ? 7 : 8;
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_MISMATCH);
    NEED(rig_works(mesh));
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_MISMATCH);
    /* only the kind of memory differs */
    int32_t x[8] = {0};
    a.count = 8;
    NEED((rig_rank == 1 ? meshcoll_allreduce(mesh, x, x, a.count, a.datatype, a.op)
                        : meshcoll_enqueue(mesh, &a, NULL)) == MESHCOLL_ERR_MISMATCH);
    NEED(rig_says("in device memory"));
    NEED(rig_works(mesh));
}

bool test_disagree(void)
{
    const rig_t rig = {.mesh = "gpu=3", .check = "1", .blocks = "2"};
    return rig_run(&rig, rank_disagree);
}

/* Between machines -------------------------------------------------------------------------------- */

static bool run_far(const rig_t *rig, void (*rank)(meshcoll_t *mesh))
{
    return rig_can_part() ? rig_run(rig, rank) : rig_skip(RIG_CANNOT_PART);
}

/* A kernel waits for a rank of another machine that does not come: the sentence names it. */
bool test_far_late(void)
{
    const rig_t rig = {.mesh = "box=3,gpu=1", .machines = "012", .blocks = "2", .timeout = "0.5"};
    return run_far(&rig, rank_late);
}

bool test_far_aborted(void)
{
    const rig_t rig = {.mesh = "box=3,gpu=1", .machines = "012", .blocks = "2"};
    return run_far(&rig, rank_aborted);
}

bool test_far_refused(void)
{
    const rig_t rig = {.mesh = "box=3,gpu=1", .machines = "012", .blocks = "2"};
    return run_far(&rig, rank_one_refused);
}

/* A rank dies while others wait for it, in a stream and in a blocking call. */
static void rank_killed(meshcoll_t *mesh)
{
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(rig_works(mesh));
    rig_meet();
    const double begun = mc_now();
    if (rig_rank == 1) {
        usleep(200 * 1000);
        kill(getpid(), SIGKILL);
    }
    if (rig_rank == 0) {
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_OK);
        NEED(cuStreamSynchronize(NULL) == 0);
        NEED(rig_await_error(mesh) == MESHCOLL_ERR_PEER && rig_says("rank 1"));
    } else {
        NEED(meshcoll_allreduce(mesh, a.in, a.out, a.count, a.datatype, a.op) == MESHCOLL_ERR_PEER);
        NEED(rig_says("rank 1"));
    }
    NEED(mc_now() - begun < SOON);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_PEER);
}

bool test_far_killed(void)
{
    const rig_t rig = {.mesh = "box=3,gpu=1", .machines = "012", .blocks = "2", .dies = 1 + 1};
    return run_far(&rig, rank_killed);
}

/* Ranks disagree about the count: the proxy finds it, and all ranks are told. */
static void rank_far_mismatch(meshcoll_t *mesh)
{
    meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(rig_works(mesh));
    rig_meet();
    a.count = rig_rank == 1 ? 40 : 80;
    NEED(meshcoll_enqueue(mesh, &a, NULL) <= 0);
    NEED(rig_await_error(mesh) == MESHCOLL_ERR_MISMATCH);
    NEED(rig_says("allreduce of 40 int32") && rig_says("allreduce of 80 int32"));
    NEED(cuStreamSynchronize(NULL) == 0); /* kernels have given up */
}

bool test_far_mismatch(void)
{
    const rig_t rig = {.mesh = "box=3,gpu=1", .machines = "012", .blocks = "2"};
    return run_far(&rig, rank_far_mismatch);
}

static void rank_far_streams(meshcoll_t *mesh)
{
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_UNSUPPORTED);
    NEED(rig_says("the ranks are on several machines, and ") && rig_says(expected));
    NEED(meshcoll_barrier(mesh) == MESHCOLL_OK);
    rig_call_free();
}

/* The stream executor works within a machine only: asked for, or needed as ranks of one machine, or of all, share a
 * GPU, whatever is asked for. Nothing is left of the mesh. */
bool test_far_streams(void)
{
    const rig_t asked = {
        .mesh = "box=2,gpu=1", .machines = "01", .executor = "stream", .tidy = true};
    const rig_t shared[] = {
        {.mesh = "box=2,gpu=2", .machines = "0011", .gpus = 1, .tidy = true},
        {.mesh = "box=2+1", .machines = "001", .gpus = 1, .executor = "kernel", .tidy = true}};
    expected = "a rank asks for the stream executor";
    bool good = run_far(&asked, rank_far_streams);
    expected = "two of them use the same GPU";
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
        good = run_far(&shared[i], rank_far_streams) && good;
    return good;
}

/* A capture is refused on all ranks, stays good, and the mesh goes on. */
static void rank_far_captured(meshcoll_t *mesh)
{
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    meshcoll_request_t *request;
    mc_cu_stream_t stream;
    fake_graph_t graph;
    NEED(rig_works(mesh));
    NEED(meshcoll_init(mesh, &a, &request) == MESHCOLL_OK);
    NEED(cuStreamCreate(&stream, MC_CU_STREAM_NON_BLOCKING) == 0);
    NEED(cuStreamBeginCapture_v2(stream, 0) == 0);
    NEED(meshcoll_enqueue(mesh, &a, stream) == MESHCOLL_ERR_UNSUPPORTED);
    NEED(rig_says("a call on device memory between machines cannot be captured"));
    NEED(meshcoll_enqueue_request(request, stream) == MESHCOLL_ERR_UNSUPPORTED);
    NEED(cuStreamEndCapture(stream, &graph) == 0);
    NEED(cuGraphDestroy(graph) == 0);
    NEED(rig_works(mesh));
    NEED(meshcoll_enqueue_request(request, stream) == MESHCOLL_OK);
    NEED(cuStreamSynchronize(stream) == 0 && meshcoll_async_error(mesh) == MESHCOLL_OK);
    meshcoll_free(request);
}

bool test_far_captured(void)
{
    const rig_t rig = {.mesh = "box=2,gpu=2", .machines = "0011", .blocks = "2"};
    return run_far(&rig, rank_far_captured);
}

/* No descriptor is left for the proxy of a rank; those that meetings need are there. */
static void cannot_make_proxy(meshcoll_t *mesh, const meshcoll_args_t *a)
{
    const int32_t in[3] = {0};
    int32_t out[3];
    struct rlimit limit;
    NEED(meshcoll_alltoall(mesh, in, out, 1, MESHCOLL_INT32) == MESHCOLL_OK);
    NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const int next = dup(STDERR_FILENO);
    struct rlimit none = limit;
    none.rlim_cur = (rlim_t)next;
    close(next);
    NEED(rig_rank != 2 || setrlimit(RLIMIT_NOFILE, &none) == 0);
    NEED(meshcoll_enqueue(mesh, a, NULL) == MESHCOLL_ERR_SYSTEM);
    NEED(rig_says("rank 2: a proxy could not be made: Too many open files"));
    NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* While the mesh opens: all are told by whom and of what, and the next call works. */
static void rank_far_cannot_open(meshcoll_t *mesh)
{
    static const char *const functions[] = {"cuMemAlloc_v2", "cuMemHostAlloc", "cuStreamCreate",
                                            "cuCtxGetDevice"};
    const meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    cannot_make_proxy(mesh, &a);
    if (rig_rank == 2) /* the proxy has no such device */
        setenv("UCX_NET_DEVICES", "nowhere0", 1);
    NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_TRANSPORT);
    NEED(rig_says("rank 2: ") && rig_says("no network device 'nowhere0'"));
    unsetenv("UCX_NET_DEVICES");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (rig_rank == 1)
            fake_fail(functions[i], 0, MC_CU_ERROR_OUT_OF_MEMORY);
        NEED(meshcoll_enqueue(mesh, &a, NULL) == MESHCOLL_ERR_DEVICE);
        NEED(rig_says("rank 1: the GPU's driver could not ") &&
             rig_says("CUDA_ERROR_OUT_OF_MEMORY"));
    }
    NEED(rig_works(mesh));
    NEED(fake_calls("cuIpcGetMemHandle") == 0); /* nobody shares a machine */
}

bool test_far_cannot_open(void)
{
    const rig_t rig = {.mesh = "box=3,gpu=1", .machines = "012", .blocks = "2"};
    return run_far(&rig, rank_far_cannot_open);
}

/* The second call has more peers than the first. */
static void rank_far_cannot_launch(meshcoll_t *mesh)
{
    const mc_case_t c = {.collective = MESHCOLL_BCAST, .count = 9, .datatype = MESHCOLL_INT32};
    meshcoll_args_t a = rig_call(MESHCOLL_ALLREDUCE);
    NEED(rig_enqueue(mesh, &c, "bcast:mst(box)", NULL));
    a.collective = MESHCOLL_ALLTOALL;
    a.out = (char *)a.out + 2048;
    cannot(mesh, a);
}

/* Slots for another machine that cannot be allocated, or a kernel that cannot be launched, fail the mesh. */
bool test_far_cannot_launch(void)
{
    static const char *const functions[] = {"cuMemHostAlloc", "cuLaunchKernel"};
    const rig_t rig = {.mesh = "box=3,gpu=1", .machines = "012", .blocks = "2"};
    bool good = rig_can_part() || rig_skip(RIG_CANNOT_PART);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0] && rig_can_part(); i++) {
        failing = (failing_t){functions[i], 0};
        good = rig_run(&rig, rank_far_cannot_launch) && good;
    }
    return good;
}

/* A rank whose kernel has ended leaves at once: what it has sent comes to one that begins later. */
static void rank_far_left(meshcoll_t *mesh)
{
    const mc_case_t c = {.collective = MESHCOLL_BCAST, .count = 700, .datatype = MESHCOLL_INT32};
    NEED(rig_works(mesh));
    rig_meet();
    if (rig_rank == 1)
        usleep(300 * 1000);
    for (int i = 0; i < 3; i++)
        NEED(rig_enqueue(mesh, &c, "bcast:mst(box)", NULL));
}

bool test_far_left(void)
{
    const rig_t rig = {
        .mesh = "box=2", .machines = "01", .blocks = "2", .slot = "4096", .tidy = true};
    return run_far(&rig, rank_far_left);
}
