#include "gpu/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

bool mc_cuda_there;

static mc_cuda_t cuda;
static char why_not[256]; /* why there is none */

/* Of a function's address as dlsym returns it. */
static void look_up(void *library, const char *name, void *function, const char **missing)
{
    void *const found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    if (!found && !*missing)
        *missing = name;
}

static void open_once(void)
{
    const char *const given = getenv("MESHCOLL_LIBCUDA");
    const char *const name = given && *given ? given : "libcuda.so.1";
    mc_text_t text = mc_text(why_not, sizeof why_not);
    if (strcmp(name, "off") == 0) {
        mc_text_add(&text, "MESHCOLL_LIBCUDA is \"off\"");
        return;
    }
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        mc_text_add(&text, "%s", dlerror());
        (void)dlerror(); /* frees the text */
        return;
    }
#define LOOK_UP(member, symbol, parameters) look_up(library, #symbol, &cuda.member, &cuda.missing);
    MC_CUDA_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    const char *unused = NULL;
#define LOOK_UP(member, symbol, parameters) look_up(library, #symbol, &cuda.member, &unused);
    MC_CUDA_DIRECT_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
#define LOOK_UP(member, symbol, parameters) \
    look_up(library, #symbol, &cuda.member, &cuda.missing_in_streams);
    MC_CUDA_STREAM_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    mc_cuda_there = cuda.pointer_attributes != NULL;
    if (!mc_cuda_there)
        mc_text_add(&text, "%s has no function cuPointerGetAttributes", name);
}

void mc_cuda_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
}

const mc_cuda_t *mc_cuda(void)
{
    return mc_cuda_there ? &cuda : NULL;
}

int mc_cuda_check(void)
{
    if (!mc_cuda_there)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "there is no CUDA driver here: %s",
                       why_not[0] ? why_not : "no mesh was created yet");
    if (cuda.missing)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "the CUDA driver is too old: libcuda has no %s; expected one of CUDA 11 or "
                       "later",
                       cuda.missing);
    return MESHCOLL_OK;
}

int mc_cuda_check_streams(void)
{
    if (!cuda.missing_in_streams)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                   "the CUDA driver is too old for ranks that share a GPU, or for "
                   "MESHCOLL_GPU_EXECUTOR=stream: libcuda has no %s; expected one of CUDA 11.7 or "
                   "later",
                   cuda.missing_in_streams);
}

int mc_cuda_status(mc_cu_result_t result, const char *what)
{
    const char *name = NULL, *text = NULL;
    if (result == 0)
        return MESHCOLL_OK;
    if (cuda.error_name && cuda.error_name(result, &name))
        name = NULL;
    if (cuda.error_text && cuda.error_text(result, &text))
        text = NULL;
    return mc_fail(MESHCOLL_ERR_DEVICE, "the GPU's driver could not %s: %s (%u)%s%s", what,
                   name ? name : "error", result, text ? ": " : "", text ? text : "");
}

int mc_cuda_pinned(size_t bytes, void **at, mc_cu_address_t *address)
{
    void *made = NULL;
    int status =
        mc_cuda_status(cuda.host_alloc(&made, bytes, MC_CU_HOST_PORTABLE | MC_CU_HOST_MAPPED),
                       "allocate pinned memory");
    if (status)
        return status;
    status = mc_cuda_status(cuda.host_address(address, made, 0), "map pinned memory");
    if (status) {
        cuda.host_free(made);
        return status;
    }
    memset(made, 0, bytes);
    *at = made;
    return MESHCOLL_OK;
}
