#include "runtime/calibrate/measure.h"

#include <stdlib.h>

static void *host_vector(size_t bytes)
{
    return calloc(1, bytes);
}

static int host_run(meshcoll_request_t *request, int32_t times)
{
    int status = MESHCOLL_OK;
    for (int32_t i = 0; i < times && !status; i++) {
        status = meshcoll_start(request);
        if (!status)
            status = meshcoll_wait(request);
    }
    return status;
}

const mc_vectors_t mc_host_vectors = {host_vector, free, host_run, false};
