/* What the runtime knows of GPUs: runtime/handle/device.h. */
#include "gpu/call/call.h"
#include "gpu/launch/launch.h"
#include "gpu/launch/times.h"
#include "gpu/mesh/gpu.h"

#include <stdlib.h>

static int run(meshcoll_t *h, mc_call_t *call)
{
    return mc_gpu_has_kernel(&call->args) ? mc_gpu_call_run(h, call) : mc_staged_run(h, call);
}

static int init(meshcoll_t *h, mc_call_t *call, meshcoll_request_t **request)
{
    return mc_gpu_has_kernel(&call->args) ? mc_gpu_request(h, call, request)
                                          : mc_staged_init(h, call, request);
}

static bool is_captured(const meshcoll_t *h)
{
    return h->gpu->captured;
}

/* The end ----------------------------------------------------------------------------------------- */

static void await(meshcoll_t *h)
{
    mc_gpu_await(h);
    mc_gpu_settle(h);
}

static void free_all(const meshcoll_t *h, bool leaves)
{
    mc_gpu_programs_free(h->gpu);
    mc_gpu_times_free(h->gpu, leaves);
    mc_gpu_free(h, h->gpu, leaves);
}

/* Of a mesh that failed, peers may still use the memory, and of one that was not unmapped may have it open. */
static void close_mesh(meshcoll_t *h)
{
    mc_gpu_visit_t visit;
    if (!h->job->failure.status && h->gpu->unmapped && !mc_gpu_visit(h->gpu->context, &visit)) {
        free_all(h, false);
        mc_gpu_leave(&visit);
    } else {
        free_all(h, true);
    }
    while (h->gpu->registrations)
        mc_gpu_window_free(h->gpu, h->gpu->registrations);
    free(h->gpu);
    h->gpu = NULL;
}

static void free_job(mc_job_t *job)
{
    mc_stages_free(job->gpu);
    mc_gpu_shared_free(job);
    free(job->gpu);
    job->gpu = NULL;
}

/* ------------------------------------------------------------------------------------------------- */

const mc_device_ops_t *mc_gpu_ops(void)
{
#define CALLS                                                                                   \
    .check = mc_cuda_check, .run = run, .init = init, .can_try = mc_gpu_can_try,                \
    .enqueue = mc_gpu_enqueue, .enqueue_request = mc_gpu_enqueue_request,                       \
    .register_memory = mc_gpu_register, .deregister = mc_gpu_deregister, .state = mc_gpu_state, \
    .is_captured = is_captured, .collect = mc_gpu_times_collect, .await = await,                \
    .unmap = mc_gpu_unmap, .close = close_mesh, .stop = mc_proxy_close, .free = free_job
    static const mc_device_ops_t without_driver = {CALLS}, ops = {.pointer = mc_pointer, CALLS};
#undef CALLS
    mc_cuda_open();
    return mc_cuda_there ? &ops : &without_driver;
}
