/* The public calls that register memory of GPUs. */
#include "gpu/launch/register.h"

#include "runtime/call/calls.h"
#include "runtime/progress/callback.h"

int meshcoll_register(meshcoll_t *mesh, void *buffer, size_t bytes,
                      struct meshcoll_registration **registration)
{
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_register: the mesh is NULL");
    const int status = mc_callback_check("meshcoll_register");
    if (status)
        return mc_call_refuse(mesh, false, status);
    mc_lock(mesh);
    return mc_leave(mesh, mc_gpu_register(mesh, buffer, bytes, registration));
}

int meshcoll_deregister(struct meshcoll_registration *registration)
{
    if (!registration)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_deregister: the registration is NULL");
    const meshcoll_t *const mesh = registration->mesh;
    const int status = mc_callback_check("meshcoll_deregister");
    if (status)
        return mc_call_refuse(registration->mesh, false, status);
    mc_lock(mesh);
    return mc_leave(mesh, mc_gpu_deregister(registration));
}
