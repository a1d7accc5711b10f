#include "common/gpu.h"

#include "gpu/cuda/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Looks up what the library does not call; the driver is open. */
static int look_up(gpu_t *gpu)
{
    const char *const given = getenv("MESHCOLL_LIBCUDA");
    const char *const name = given && *given ? given : "libcuda.so.1";
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL), *found;
    if (!library)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "there is no CUDA driver here: %s", dlerror());
#define LOOK_UP(member, symbol, parameters)                                                        \
    found = dlsym(library, #symbol);                                                               \
    memcpy(&gpu->member, &found, sizeof found);                                                    \
    if (!found)                                                                                    \
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "%s has no %s; expected one of CUDA 11 or later", \
                       name, #symbol);
    GPU_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return MESHCOLL_OK;
}

/* A launcher may show each process its own GPU alone: that is then number 0 of one. */
static int choose(const gpu_t *gpu, int seat, int seats, mc_cu_device_t *device)
{
    int n = 0;
    int status = mc_cuda_status(gpu->cuda->device_count(&n), "count its GPUs");
    if (!status && seat >= n && n != 1)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "this machine has %d ranks and %d GPU%s: start at most as many ranks as it "
                       "has GPUs",
                       seats, n, n == 1 ? "" : "s");
    if (!status)
        status = mc_cuda_status(gpu->cuda->device_get(device, n == 1 ? 0 : seat), "find a GPU");
    return status;
}

static int begin(int seat, int seats, gpu_t *gpu)
{
    mc_cu_device_t device = 0;
    mc_cu_context_t context = NULL;
    int status = mc_cuda_status(gpu->init(0), "begin");
    if (!status)
        status = choose(gpu, seat, seats, &device);
    if (!status)
        status = mc_cuda_status(gpu->device_name(gpu->name, GPU_NAME, device), "name a GPU");
    if (!status)
        status = mc_cuda_status(gpu->context_retain(&context, device), "make a context");
    if (!status)
        status = mc_cuda_status(gpu->context_set(context), "use a context");
    if (!status)
        status = mc_cuda_status(gpu->cuda->stream_create(&gpu->stream, MC_CU_STREAM_NON_BLOCKING),
                                "make a stream");
    for (int i = 0; i < 2 && !status; i++)
        status = mc_cuda_status(gpu->cuda->event_create(&gpu->event[i], 0), "make an event");
    return status;
}

int gpu_open(int seat, int seats, gpu_t *gpu)
{
    gpu_t mine = {.cuda = NULL};
    mc_cuda_open();
    int status = mc_cuda_check();
    if (!status && !mc_cuda_image())
        status = mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                         "the library was built without nvcc, so it has no kernels for a GPU");
    if (status)
        return status;
    mine.cuda = mc_cuda();
    status = look_up(&mine);
    if (!status)
        status = begin(seat, seats, &mine);
    if (status) {
        gpu_close(&mine);
        return status;
    }
    *gpu = mine;
    return MESHCOLL_OK;
}

void gpu_close(gpu_t *gpu)
{
    for (int i = 1; i >= 0; i--)
        if (gpu->event[i])
            gpu->cuda->event_destroy(gpu->event[i]);
    if (gpu->stream)
        gpu->cuda->stream_destroy(gpu->stream);
    *gpu = (gpu_t){.cuda = NULL};
}

int gpu_mark(const gpu_t *gpu, int which)
{
    return mc_cuda_status(gpu->cuda->event_record(gpu->event[which], gpu->stream),
                          "record an event");
}

int gpu_wait(const gpu_t *gpu)
{
    return mc_cuda_status(gpu->cuda->stream_synchronize(gpu->stream), "run what is in a stream");
}

int gpu_elapsed(const gpu_t *gpu, double *seconds)
{
    float ms = 0;
    const int status =
        mc_cuda_status(gpu->event_elapsed(&ms, gpu->event[0], gpu->event[1]), "read events");
    if (!status)
        *seconds = ms * 1e-3;
    return status;
}
