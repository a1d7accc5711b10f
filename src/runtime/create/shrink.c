/* A mesh of the survivors of one that failed. */
#include "job/monitor/monitor.h"
#include "runtime/create/create.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"

#include <math.h>
#include <stdlib.h>

/* Seconds for the news of a failure that other ranks know already. */
enum { NEWS_SECONDS = 5 };

static int check(const meshcoll_t *mesh, double seconds, meshcoll_t *const *survivors)
{
    mc_news_t news;
    if (mc_callback_check("meshcoll_shrink"))
        return MESHCOLL_ERR_INVALID_ARG;
    if (!mesh || !survivors || !(seconds >= 0) || isinf(seconds))
        return mc_fail(
            MESHCOLL_ERR_INVALID_ARG,
            "meshcoll_shrink: mesh or survivors is NULL, or the seconds are not a number "
            "from 0 on");
    if (mc_failure_unusable(mesh))
        return mesh->job->failure.status;
    if (mesh->entry.from || !mesh->job->monitor)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "meshcoll_shrink: %s",
                       mesh->entry.from ? "a sub-mesh or group cannot be shrunk: "
                                          "shrink the mesh that it was made from"
                                        : "all ranks of this mesh are in one process");
    if (!mc_news_await(mc_monitor_board(mesh->job->monitor), NEWS_SECONDS, &news))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_shrink: this mesh has not failed; meshcoll_abort ends one that "
                       "works");
    return MESHCOLL_OK;
}

/* By rank of the monitors: is it one of the mesh? ERR_UNSUPPORTED where the mesh has another order than they. */
static int find_members(const meshcoll_t *h, bool *member)
{
    const mc_job_t *const job = h->job;
    int32_t last = -1;
    for (int32_t i = 0; i < h->mesh.size; i++) {
        const int32_t rank =
            mc_comm_rank_of(&job->order, mc_job_rank(h, mc_mesh_rank_of(&h->order, i)));
        if (rank < last)
            return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                           "meshcoll_shrink: this mesh shares connections with one that was made "
                           "before, and has its ranks in another order: shrink that one");
        member[rank] = true;
        last = rank;
    }
    return MESHCOLL_OK;
}

static int gather(meshcoll_t *h, double seconds, mc_survivors_t **survivors)
{
    bool *const member = calloc((size_t)h->job->mesh.size, sizeof *member);
    int status = member ? find_members(h, member) : mc_fail_memory("the survivors of a mesh");
    if (!status)
        status = mc_survivors_gather(h->job->monitor, member, seconds, survivors);
    free(member);
    return status;
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
        status = gather(mesh, seconds, &s);
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
