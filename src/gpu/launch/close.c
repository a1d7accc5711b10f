#include "gpu/launch/close.h"

#include "gpu/launch/launch.h"
#include "gpu/launch/programs.h"
#include "gpu/launch/stage.h"
#include "gpu/launch/times.h"
#include "gpu/mesh/open.h"
#include "gpu/mesh/window.h"

#include <stdlib.h>

void mc_gpu_await_all(meshcoll_t *h)
{
    for (meshcoll_t *sub = h->job->meshes; sub; sub = sub->next)
        if (mc_mesh_is_of(sub, h)) {
            mc_gpu_await(sub);
            mc_gpu_settle(sub);
        }
}

static void free_all(const meshcoll_t *h, bool leaves)
{
    mc_gpu_programs_free(h->gpu);
    mc_gpu_times_free(h->gpu, leaves);
    mc_gpu_free(h, h->gpu, leaves);
}

/* Of a mesh that failed, peers may still use the memory, and of one that was not unmapped may have it open. */
void mc_gpu_close(meshcoll_t *h)
{
    mc_gpu_visit_t visit;
    mc_stages_close(h);
    if (h->gpu && !h->job->broken && mc_gpu_is_unmapped(h->gpu) && !mc_gpu_enter(h->gpu, &visit)) {
        free_all(h, false);
        mc_gpu_leave(&visit);
    } else if (h->gpu) {
        free_all(h, true);
    }
    while (h->gpu && h->gpu->registrations)
        mc_gpu_window_free(h->gpu, h->gpu->registrations);
    free(h->gpu);
    h->gpu = NULL;
}
