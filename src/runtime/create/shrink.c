/* A mesh of the survivors of one that failed. */
#include "runtime/create/create.h"
#include "runtime/monitor/survivors.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"

#include <math.h>

/* Seconds for the news of a failure that other ranks know already. */
enum { NEWS_SECONDS = 5 };

static int check(const meshcoll_t *mesh, double seconds, meshcoll_t *const *survivors)
{
    mc_news_t news;
    if (mc_callback_check("meshcoll_shrink"))
        return MESHCOLL_ERR_INVALID_ARG;
    if (!mesh || !survivors || !(seconds >= 0) || isinf(seconds))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_shrink: mesh or survivors is NULL, or the seconds are no number "
                       "from 0 on");
    if (mc_failure_unusable(mesh))
        return mesh->job->broken;
    if (mesh->root_rank || !mesh->job->monitor)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "meshcoll_shrink: %s",
                       mesh->root_rank ? "a sub-mesh or group cannot be shrunk: "
                                         "shrink the mesh that it was made from"
                                       : "all ranks of this mesh are in one process");
    if (!mc_news_await(mc_monitor_board(mesh->job->monitor), NEWS_SECONDS, &news))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_shrink: this mesh has not failed; meshcoll_abort ends one that "
                       "works");
    return MESHCOLL_OK;
}

static bool gives_mesh(const meshcoll_params_t *params)
{
    return params && params->size > offsetof(meshcoll_params_t, mesh) && params->mesh;
}

int meshcoll_shrink(meshcoll_t *mesh, double seconds, const meshcoll_params_t *params,
                    meshcoll_t **survivors)
{
    mc_survivors_t *s;
    int status = check(mesh, seconds, survivors);
    if (!status)
        status = mc_survivors_gather(mesh->job->monitor, seconds, &s);
    if (status)
        return status;
    const mc_creation_t creation = {.oob = mc_survivors_oob(s),
                                    .free_context = mc_survivors_free,
                                    .params = params,
                                    .finds_mesh = !gives_mesh(params),
                                    .tuned = true};
    status = mc_handle_create(&creation, survivors);
    if (status)
        mc_survivors_free(s);
    return status;
}
