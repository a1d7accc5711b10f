/* The public calls on device memory in streams. */
#include "runtime/call/enqueue.h"
#include "gpu/launch/launch.h"
#include "runtime/call/calls.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"

int meshcoll_enqueue(meshcoll_t *mesh, const meshcoll_args_t *args, void *stream)
{
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_enqueue: the mesh is NULL");
    if (!args)
        return mc_call_refuse(mesh, false,
                              mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_enqueue: args is NULL"));
    mc_lock(mesh);
    const int status = mc_enqueue(mesh, args, stream);
    return mc_leave(mesh, status);
}

static int check_request(const meshcoll_request_t *r)
{
    if (!r || !r->mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_enqueue_request: %s",
                       r ? "the request's mesh is destroyed" : "the request is NULL");
    if (r->stage)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "meshcoll_enqueue_request: there is no kernel for the request's operation, "
                       "which runs on the host: start it by meshcoll_start");
    if (!r->program)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_enqueue_request: expected a persistent request on device memory, "
                       "made by meshcoll_init; got one on host memory, or of no elements");
    return MESHCOLL_OK;
}

int meshcoll_enqueue_request(meshcoll_request_t *request, void *stream)
{
    const int status = check_request(request);
    if (status)
        return status;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    return mc_leave(h, mc_enqueue_request(request, stream));
}

int meshcoll_async_error(meshcoll_t *mesh)
{
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_async_error: the mesh is NULL");
    mc_lock(mesh);
    int status = mc_failure_check(mesh);
    if (!status && mesh->gpu)
        status = mc_gpu_state(mesh);
    return mc_leave(mesh, status == MESHCOLL_IN_PROGRESS ? MESHCOLL_OK : status);
}
