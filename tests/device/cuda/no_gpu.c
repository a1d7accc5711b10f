/* A library that is built without src/gpu, whatever this one is: calls on device memory are refused with what to do,
 * and host memory works as ever. */
#include "fake.h"
#include "support/inproc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(good)                                                                  \
    do {                                                                            \
        if (!(good)) {                                                              \
            printf("%d: not so: %s; %s\n", __LINE__, #good, meshcoll_last_error()); \
            return 1;                                                               \
        }                                                                           \
    } while (0)

static bool is_refused(int status)
{
    return status == MESHCOLL_ERR_UNSUPPORTED &&
           strstr(meshcoll_last_error(), "built with -DMESHCOLL_CUDA=OFF");
}

int main(void)
{
    mc_cu_context_t context;
    mc_cu_address_t at, managed;
    meshcoll_t *mesh;
    meshcoll_request_t *request;
    meshcoll_registration_t *registration;
    float host[10] = {1};
    NEED(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 &&
         cuCtxSetCurrent(context) == 0);
    NEED(cuMemAlloc_v2(&at, 4096) == 0 && cuMemAllocManaged(&managed, 4096, 1) == 0);
    float *const device = (float *)(uintptr_t)at, *const both = (float *)(uintptr_t)managed;
    const meshcoll_args_t args = {.size = sizeof args,
                                  .collective = MESHCOLL_ALLREDUCE,
                                  .in = device,
                                  .out = device,
                                  .count = 10};
    NEED(mc_inproc_create("gpu=1", NULL, &mesh) == MESHCOLL_OK);
    NEED(is_refused(meshcoll_allreduce(mesh, device, device, 10, MESHCOLL_FLOAT32, MESHCOLL_SUM)));
    NEED(is_refused(
        meshcoll_iallreduce(mesh, device, device, 10, MESHCOLL_FLOAT32, MESHCOLL_SUM, &request)));
    NEED(is_refused(meshcoll_init(mesh, &args, &request)));
    NEED(is_refused(meshcoll_enqueue(mesh, &args, NULL)));
    NEED(is_refused(meshcoll_register(mesh, device, 4096, &registration)));
    NEED(meshcoll_allreduce(mesh, host, host, 10, MESHCOLL_FLOAT32, MESHCOLL_SUM) == MESHCOLL_OK);
    NEED(meshcoll_allreduce(mesh, both, both, 10, MESHCOLL_FLOAT32, MESHCOLL_SUM) == MESHCOLL_OK);
    NEED(meshcoll_async_error(mesh) == MESHCOLL_OK && host[0] == 1);
    meshcoll_destroy(mesh);
    return 0;
}
