#include "tools/tune/tune.h"

#include "gpu/cuda/driver.h"
#include "runtime/handle/request.h"
#include "tools/common/tool.h"
#include "tools/gpu/gpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    bool on;
    mc_cu_stream_t stream;
    mc_cu_event_t done;
} gpu;

/* Failing ----------------------------------------------------------------------------------------- */

void mc_tune_check(int status, const char *what)
{
    if (status == MESHCOLL_OK)
        return;
    fprintf(stderr, "meshcoll tune: %s: %s\n", what, meshcoll_last_error());
    exit(MC_EXIT_FAILED);
}

void *mc_tune_allocate(size_t bytes)
{
    void *const memory = calloc(1, bytes);
    if (!memory)
        mc_tune_check(mc_fail_memory("the vectors"), "memory");
    return memory;
}

/* Taking ------------------------------------------------------------------------------------------ */

/* Launchers may show each rank one GPU only. */
static int pick(const mc_place_t *place, int32_t rank, int32_t *number)
{
    int n = 0;
    int32_t before = 0;
    const int status = mc_cuda_status(mc_cuda()->device_count(&n), "count its GPUs");
    if (status)
        return status;
    for (int32_t r = 0; r < rank; r++)
        before += place[r].machine == place[rank].machine;
    if (n != 1 && before >= n)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "rank %d is the one numbered %d of its machine, which shows it %d GPUs: "
                       "expected a GPU for each rank",
                       (int)rank, (int)before, n);
    *number = n == 1 ? 0 : before;
    return MESHCOLL_OK;
}

static int describe(int32_t number, char text[MC_TUNE_GPU_TEXT])
{
    mc_gpus_t *const gpus = malloc(sizeof *gpus);
    const int status = gpus ? mc_gpus_find(gpus) : mc_fail_memory("a list of GPUs");
    if (!status)
        snprintf(text, MC_TUNE_GPU_TEXT, "%s, driver %s",
                 number < gpus->n ? gpus->gpu[number].name : "a GPU", gpus->driver);
    free(gpus);
    return status;
}

static int open_stream(void)
{
    const mc_cuda_t *const cuda = mc_cuda();
    const int status = mc_cuda_status(cuda->stream_create(&gpu.stream, MC_CU_STREAM_NON_BLOCKING),
                                      "make a stream");
    return status ? status
                  : mc_cuda_status(cuda->event_create(&gpu.done, MC_CU_EVENT_NO_TIMING),
                                   "make an event");
}

int mc_tune_take_gpu(const mc_place_t *place, int32_t rank, char text[MC_TUNE_GPU_TEXT])
{
    mc_cu_context_t context;
    mc_cu_device_t device;
    int32_t number;
    int status = mc_gpus_init();
    if (!status)
        status = pick(place, rank, &number);
    if (!status)
        status = mc_cuda_status(mc_cuda()->device_get(&device, number), "tell of a GPU");
    if (!status)
        status = mc_cuda_status(mc_cuda()->context_retain(&context, device), "make a context");
    if (!status)
        status = mc_cuda_status(mc_cuda()->context_set(context), "use its context");
    if (!status)
        status = open_stream();
    if (!status)
        status = describe(number, text);
    gpu.on = !status;
    return status;
}

bool mc_tune_on_device(void)
{
    return gpu.on;
}

/* Vectors ----------------------------------------------------------------------------------------- */

void *mc_tune_vector(size_t bytes)
{
    mc_cu_address_t at;
    if (!gpu.on)
        return mc_tune_allocate(bytes);
    const mc_cuda_t *const cuda = mc_cuda();
    mc_tune_check(mc_cuda_status(cuda->alloc(&at, bytes), "allocate a vector"), "memory");
    mc_tune_check(mc_cuda_status(cuda->fill(at, 0, bytes, gpu.stream), "zero it"), "memory");
    mc_tune_check(mc_cuda_status(cuda->stream_synchronize(gpu.stream), "zero it"), "memory");
    return (void *)(uintptr_t)at;
}

void mc_tune_vector_free(void *vector)
{
    if (gpu.on && vector)
        (void)mc_cuda()->free((mc_cu_address_t)(uintptr_t)vector);
    else
        free(vector);
}

/* Running ----------------------------------------------------------------------------------------- */

/* meshcoll_async_error finds out where a kernel gave up. */
static void await(meshcoll_t *mesh)
{
    const mc_cuda_t *const cuda = mc_cuda();
    mc_cu_result_t result;
    mc_tune_check(mc_cuda_status(cuda->event_record(gpu.done, gpu.stream), "record an event"),
                  "a stream");
    while ((result = cuda->event_query(gpu.done)) == MC_CU_ERROR_NOT_READY) {
        mc_tune_check(meshcoll_async_error(mesh), "a message");
        sched_yield();
    }
    mc_tune_check(mc_cuda_status(result, "run a stream"), "a stream");
    mc_tune_check(meshcoll_async_error(mesh), "a message");
}

void mc_tune_run(meshcoll_request_t *request, int32_t times)
{
    for (int32_t i = 0; i < times; i++) {
        if (gpu.on) {
            mc_tune_check(meshcoll_enqueue_request(request, gpu.stream), "a start");
            continue;
        }
        mc_tune_check(meshcoll_start(request), "a start");
        mc_tune_check(meshcoll_wait(request), "a message");
    }
    if (gpu.on)
        await(request->mesh);
}
