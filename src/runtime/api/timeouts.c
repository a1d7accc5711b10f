/* The limits of how long requests may run. */
#include "runtime/diagnose/board.h"
#include "runtime/handle/request.h"
#include "runtime/progress/callback.h"

static int read_seconds(const char *function, double seconds, int64_t *ms)
{
    if (mc_timeout_ms(seconds, ms))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: expected seconds, 0 for no limit; got %g",
                       function, seconds);
    return MESHCOLL_OK;
}

int meshcoll_set_timeout(meshcoll_t *mesh, double seconds)
{
    int64_t ms;
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_set_timeout: the mesh is NULL");
    const int status = read_seconds("meshcoll_set_timeout", seconds, &ms);
    if (status)
        return status;
    mc_lock(mesh);
    mesh->timeout_ms = ms;
    return mc_leave(mesh, MESHCOLL_OK);
}

static int check_request(const meshcoll_request_t *r)
{
    if (!r)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_set_request_timeout: the request is NULL; "
                       "a call of a group has none");
    if (!r->mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_set_request_timeout: the request's mesh is destroyed");
    return MESHCOLL_OK;
}

int meshcoll_set_request_timeout(meshcoll_request_t *request, double seconds)
{
    int64_t ms = 0;
    int status = check_request(request);
    if (!status)
        status = read_seconds("meshcoll_set_request_timeout", seconds, &ms);
    if (status)
        return status;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    if (request->persistent || request->taken)
        request->limit_ms = ms > 0 ? ms : -1;
    else
        status = mc_fail(MESHCOLL_ERR_INVALID_ARG,
                         "meshcoll_set_request_timeout: this call is complete, and its request no "
                         "longer the caller's");
    return mc_leave(h, status);
}
