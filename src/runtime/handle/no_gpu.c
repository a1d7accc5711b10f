/* In place of src/gpu, in a library that is built without it (MESHCOLL_CUDA=OFF): tells device memory from the host's,
 * so that calls on it are refused. */
#include "runtime/handle/device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_MEMORYTYPE_DEVICE */
enum { TYPE = 2, MANAGED = 8, DEVICE = 2 };

static unsigned (*attributes)(unsigned n, const unsigned *what, void **answer,
                              unsigned long long at); /* cuPointerGetAttributes; NULL: no driver */

static mc_pointer_t pointer(const void *at)
{
    static const unsigned what[] = {TYPE, MANAGED};
    unsigned type = 0, managed = 0;
    void *answer[] = {&type, &managed};
    const bool known = at && attributes(2, what, answer, (uintptr_t)at) == 0;
    return (mc_pointer_t){.kind = known && type == DEVICE && !managed ? MC_MEMORY_DEVICE
                                                                      : MC_MEMORY_HOST};
}

static int check(void)
{
    return mc_fail(
        MESHCOLL_ERR_UNSUPPORTED,
        "this meshcoll does not use GPUs, as it was built with -DMESHCOLL_CUDA=OFF: build "
        "it with -DMESHCOLL_CUDA=ON where the CUDA toolkit is");
}

static void open_once(void)
{
    const char *const given = getenv("MESHCOLL_LIBCUDA"); /* "off" is no library */
    void *const library = dlopen(given && *given ? given : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *const found = library ? dlsym(library, "cuPointerGetAttributes") : NULL;
    memcpy(&attributes, &found, sizeof found);
    (void)dlerror(); /* the text of an error, */
    (void)dlerror(); /* which is freed here */
}

const mc_device_ops_t *mc_gpu_ops(void)
{
    static const mc_device_ops_t without_driver = {.check = check},
                                 ops = {.pointer = pointer, .check = check};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return attributes ? &ops : &without_driver;
}
