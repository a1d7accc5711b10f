#include "job/monitor/monitor.h"
#include "runtime/progress/failure.h"

int meshcoll_abort(meshcoll_t *mesh, const char *why)
{
    if (!mesh)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "meshcoll_abort: the mesh is NULL");
    if (mc_failure_unusable(mesh))
        return mesh->job->broken;
    if (!mesh->job->monitor)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                       "meshcoll_abort: all ranks of this mesh are in one process");
    const int32_t rank = mc_monitor_rank(mesh->job->monitor);
    mc_news_t news = {.kind = MC_NEWS_FATAL, .status = MESHCOLL_ERR_ABORTED, .rank = rank};
    mc_text_t text = mc_text(news.text, sizeof news.text);
    mc_text_add(&text, "rank %d aborted the mesh%s%s", (int)rank, why ? ": " : "", why ? why : "");
    mc_monitor_tell(mesh->job->monitor, &news);
    return MESHCOLL_OK;
}
