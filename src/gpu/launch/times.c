#include "gpu/launch/times.h"

#include <stdlib.h>

/* Whose they are ---------------------------------------------------------------------------------- */

static mc_on_gpu_t how(const mc_gpu_program_t *p)
{
    return (mc_on_gpu_t){.blocks = p->call.blocks,
                         .tracks = p->call.tracks,
                         .slots = MC_DEVICE_SLOTS,
                         .slot_bytes = p->call.slot_bytes,
                         .passes = p->call.passes,
                         .sent = p->n_sent,
                         .direct = p->n_direct,
                         .by_gpu = p->lowered->n_peers - p->by_host,
                         .by_host = p->by_host,
                         .why_host = p->why_host};
}

/* Stores the times of launches that are complete. The context is current. */
static void collect(const meshcoll_t *h)
{
    const mc_cuda_t *const cuda = mc_cuda();
    mc_gpu_times_t *const times = h->gpu->times;
    for (; times->n > 0; times->n--) {
        const mc_gpu_timed_t *const t = &times->launch[times->first];
        float milliseconds = -1;
        const mc_cu_result_t result = cuda->event_query(t->end);
        if (result == MC_CU_ERROR_NOT_READY)
            return;
        /* of a mesh that failed, kernels have given up */
        if (h->job->failure.status || result ||
            cuda->event_elapsed(&milliseconds, t->begin, t->end))
            milliseconds = -1;
        h->hooks->took(h, t->call, milliseconds < 0 ? -1 : (double)milliseconds * 1e-3);
        times->first = (times->first + 1) % MC_GPU_TIMED;
    }
}

void mc_gpu_times_collect(const meshcoll_t *h)
{
    mc_gpu_visit_t visit;
    if (!h->gpu->times || mc_gpu_visit(h->gpu->context, &visit))
        return;
    collect(h);
    mc_gpu_leave(&visit);
}

int mc_gpu_record(meshcoll_t *h, const meshcoll_args_t *a, const mc_ranked_t *choice,
                  const mc_gpu_program_t *p, struct mc_record **call)
{
    *call = NULL;
    if (!h->hooks->on_gpu)
        return MESHCOLL_OK;
    if (!h->gpu->times)
        h->gpu->times = calloc(1, sizeof *h->gpu->times);
    if (!h->gpu->times)
        return mc_fail_memory("times of launches");
    const mc_on_gpu_t gpu = how(p);
    return h->hooks->on_gpu(h, a, &choice->strategy, &gpu, call);
}

/* Launches ---------------------------------------------------------------------------------------- */

static bool begin(mc_gpu_timed_t *t, mc_cu_stream_t stream)
{
    const mc_cuda_t *const cuda = mc_cuda();
    if (!t->begin && cuda->event_create(&t->begin, 0))
        t->begin = NULL;
    if (t->begin && !t->end && cuda->event_create(&t->end, 0))
        t->end = NULL;
    return t->begin && t->end && cuda->event_record(t->begin, stream) == 0;
}

mc_gpu_timed_t *mc_gpu_times_begin(const meshcoll_t *h, struct mc_record *call,
                                   mc_cu_stream_t stream)
{
    mc_gpu_times_t *const times = h->gpu->times;
    collect(h);
    mc_gpu_timed_t *const t = &times->launch[(times->first + times->n) % MC_GPU_TIMED];
    if (!call || times->n == MC_GPU_TIMED || !begin(t, stream)) {
        h->hooks->took(h, call, -1);
        return NULL;
    }
    t->call = call;
    return t;
}

void mc_gpu_times_end(const meshcoll_t *h, mc_gpu_timed_t *t, mc_cu_stream_t stream)
{
    if (mc_cuda()->event_record(t->end, stream))
        h->hooks->took(h, t->call, -1);
    else
        h->gpu->times->n++;
}

/* The end ----------------------------------------------------------------------------------------- */

void mc_gpu_times_free(mc_gpu_t *gpu, bool leaves)
{
    for (int i = 0; gpu->times && !leaves && i < MC_GPU_TIMED; i++) {
        const mc_gpu_timed_t *const t = &gpu->times->launch[i];
        if (t->begin)
            mc_cuda()->event_destroy(t->begin);
        if (t->end)
            mc_cuda()->event_destroy(t->end);
    }
    free(gpu->times);
    gpu->times = NULL;
}
