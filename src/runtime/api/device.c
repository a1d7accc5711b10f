/* The public calls on device memory: in streams, and registering it. */
#include "runtime/call/call.h"
#include "runtime/call/leads.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"

static int null_mesh(const char *function)
{
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: the mesh is NULL", function);
}

int meshcoll_enqueue(meshcoll_t *mesh, const meshcoll_args_t *args, void *stream)
{
    if (!mesh)
        return null_mesh("meshcoll_enqueue");
    const mc_device_ops_t *const device = mesh->job->device;
    const int status = args ? mc_device_check_built(device)
                            : mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_enqueue: args is NULL");
    if (status)
        return mc_call_refuse(mesh, false, mc_call_exchanges(args), status);
    mc_lock(mesh);
    return mc_leave(mesh, device->enqueue(mesh, args, stream));
}

static int check_request(const meshcoll_request_t *r)
{
    if (!r || !r->mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_enqueue_request: %s",
                       r ? "the request's mesh is destroyed" : "the request is NULL");
    if (r->kind->blocks)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "meshcoll_enqueue_request: there is no kernel for the request's operation, "
                       "which runs on the host: start it by meshcoll_start");
    if (!r->persistent || mc_persistent_of(r)->lead)
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
    return mc_leave(h, h->job->device->enqueue_request(request, stream));
}

int meshcoll_async_error(meshcoll_t *mesh)
{
    if (!mesh)
        return null_mesh("meshcoll_async_error");
    mc_lock(mesh);
    int status = mc_failure_check(mesh);
    if (!status && mesh->gpu)
        status = mesh->job->device->state(mesh);
    return mc_leave(mesh, status == MESHCOLL_IN_PROGRESS ? MESHCOLL_OK : status);
}

int meshcoll_register(meshcoll_t *mesh, void *buffer, size_t bytes,
                      meshcoll_registration_t **registration)
{
    if (!mesh)
        return null_mesh("meshcoll_register");
    const mc_device_ops_t *const device = mesh->job->device;
    int status = mc_callback_check("meshcoll_register");
    if (!status)
        status = mc_device_check_built(device);
    if (status)
        return mc_call_refuse(mesh, false, false, status);
    mc_lock(mesh);
    return mc_leave(mesh, device->register_memory(mesh, buffer, bytes, registration));
}

int meshcoll_deregister(meshcoll_registration_t *registration)
{
    if (!registration)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_deregister: the registration is NULL");
    meshcoll_t *const mesh = registration->mesh;
    const int status = mc_callback_check("meshcoll_deregister");
    if (status)
        return mc_call_refuse(mesh, false, false, status);
    mc_lock(mesh);
    return mc_leave(mesh, mesh->job->device->deregister(registration));
}
