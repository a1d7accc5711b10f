#include "gpu/mesh/window.h"

#include "compose/algorithms/placement.h"
#include "runtime/handle/args.h"

#include <stdlib.h>

const mc_gpu_window_t *mc_gpu_window(const meshcoll_t *h, const meshcoll_args_t *a)
{
    const mc_gpu_window_t *w = h->gpu->registrations;
    const mc_placement_t to = mc_moves[a->collective].to;
    if (!w || a->counts || a->in_counts || a->counts_at_root ||
        (to != MC_REPLICA && to != MC_DESTINATION))
        return NULL;
    const size_t bytes = mc_args_needs(h, a).out;
    const uintptr_t out = (uintptr_t)a->out;
    for (; w; w = w->next) {
        const uintptr_t at = (uintptr_t)w->buffer;
        if (out >= at && out - at <= w->bytes && bytes <= w->bytes - (out - at))
            return w;
    }
    return NULL;
}

void mc_gpu_window_unmap(mc_gpu_window_t *w, int32_t ranks)
{
    for (int32_t r = 0; w->mapped && r < ranks; r++) {
        if (w->mapped[r])
            mc_cuda()->ipc_close(w->mapped[r]);
        w->mapped[r] = 0;
    }
}

void mc_gpu_window_free(mc_gpu_t *gpu, mc_gpu_window_t *w)
{
    for (mc_gpu_window_t **at = &gpu->registrations; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    free(w->peer);
    free(w->mapped);
    free(w);
}
