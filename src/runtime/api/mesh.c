/* What a mesh is, its settings, and its abort. */
#include "job/monitor/monitor.h"
#include "runtime/call/cache.h"
#include "runtime/diagnose/waits/requests.h"
#include "runtime/progress/callback.h"
#include "runtime/progress/failure.h"

static int no_mesh(const char *function)
{
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: the mesh is NULL", function);
}

int meshcoll_rank(const meshcoll_t *mesh)
{
    return mesh ? mc_comm_rank_of(&mesh->order, mesh->rank) : no_mesh("meshcoll_rank");
}

int meshcoll_size(const meshcoll_t *mesh)
{
    return mesh ? mesh->mesh.size : no_mesh("meshcoll_size");
}

const char *meshcoll_mesh_text(const meshcoll_t *mesh)
{
    if (!mesh)
        no_mesh("meshcoll_mesh_text");
    return mesh ? mesh->text : NULL;
}

int meshcoll_coord(const meshcoll_t *mesh, int rank, int dim)
{
    int32_t coord[MC_MAX_DIMS];
    if (!mesh)
        return no_mesh("meshcoll_coord");
    if (rank < 0 || rank >= mesh->mesh.size || dim < 0 || dim >= mesh->mesh.ndims)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_coord: expected a rank from 0 to %d and a dimension from 0 to %d, "
                       "got %d and %d",
                       mesh->mesh.size - 1, mesh->mesh.ndims - 1, rank, dim);
    mc_mesh_coords(&mesh->mesh, mc_mesh_rank_of(&mesh->order, rank), coord);
    return coord[dim];
}

uint64_t meshcoll_bytes_sent(const meshcoll_t *mesh, int dim)
{
    if (!mesh)
        no_mesh("meshcoll_bytes_sent");
    if (!mesh || dim < 0 || dim >= mesh->mesh.ndims)
        return 0;
    mc_lock(mesh);
    const uint64_t bytes = mesh->bytes_sent[dim];
    mc_unlock(mesh);
    return bytes;
}

int meshcoll_set_strategy(meshcoll_t *mesh, meshcoll_collective_t collective, const char *strategy)
{
    if (!mesh || (unsigned)collective >= MESHCOLL_COLLECTIVES)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_set_strategy: the mesh is NULL or there is no collective %d",
                       (int)collective);
    mc_lock(mesh);
    const int status = mc_choice_force(&mesh->choice, collective, strategy, &mesh->mesh);
    if (!status)
        mc_cache_drop(mesh, (int)collective);
    mc_unlock(mesh);
    return status;
}

/* The limits of how long requests may run. */

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

int meshcoll_set_request_timeout(meshcoll_request_t *request, double seconds)
{
    static const char function[] = "meshcoll_set_request_timeout";
    int64_t ms = 0;
    int status = mc_request_check(request, function);
    if (!status)
        status = read_seconds(function, seconds, &ms);
    if (status)
        return status;
    const meshcoll_t *const h = request->mesh;
    mc_lock(h);
    status = mc_request_check_owned(request, function);
    if (!status)
        request->watched.limit = ms > 0 ? ms : -1;
    return mc_leave(h, status);
}

int meshcoll_abort(meshcoll_t *mesh, const char *why)
{
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_abort: the mesh is NULL");
    if (mc_failure_unusable(mesh))
        return mesh->job->failure.status;
    if (!mesh->job->monitor)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "meshcoll_abort: all ranks of this mesh are in one process");
    const int32_t rank = mc_monitor_rank(mesh->job->monitor);
    mc_news_t news = {.kind = MC_NEWS_FATAL, .status = MESHCOLL_ERR_ABORTED, .rank = rank};
    mc_text_t text = mc_text(news.text, sizeof news.text);
    mc_text_add(&text, "rank %d aborted the mesh%s%s", (int)rank, why ? ": " : "", why ? why : "");
    mc_monitor_broadcast(mesh->job->monitor, &news);
    return MESHCOLL_OK;
}
