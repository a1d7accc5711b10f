#include "gpu/launch/times.h"

#include "runtime/call/adapt.h"

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

/* Launches ---------------------------------------------------------------------------------------- */

static void free_timed(mc_gpu_timed_t *t, bool leaves)
{
    if (t->begin && !leaves)
        mc_cuda()->event_destroy(t->begin);
    if (t->end && !leaves)
        mc_cuda()->event_destroy(t->end);
    free(t);
}

/* Of a mesh that failed, kernels have given up. */
static double seconds_of(const meshcoll_t *h, const mc_gpu_timed_t *t, mc_cu_result_t result)
{
    float milliseconds;
    return h->job->failure.status || result ||
                   mc_cuda()->event_elapsed(&milliseconds, t->begin, t->end) || milliseconds < 0
               ? -1
               : (double)milliseconds * 1e-3;
}

static void took(const meshcoll_t *h, struct mc_record *call, double seconds)
{
    if (h->hooks->took)
        h->hooks->took(h, call, seconds);
}

/* Stores the times of launches that are complete; returns how many are not. The context is current. */
static int collect(const meshcoll_t *h)
{
    int left = 0;
    for (mc_gpu_timed_t *t; (t = h->gpu->timed);) {
        const mc_cu_result_t result = mc_cuda()->event_query(t->end);
        if (result == MC_CU_ERROR_NOT_READY)
            break;
        const double seconds = seconds_of(h, t, result);
        took(h, t->call, seconds);
        if (t->learns)
            mc_adapt_note(h, &t->key, t->candidate, seconds);
        h->gpu->timed = t->next;
        free_timed(t, false);
    }
    for (const mc_gpu_timed_t *t = h->gpu->timed; t; t = t->next)
        left++;
    return left;
}

void mc_gpu_times_collect(const meshcoll_t *h)
{
    mc_gpu_visit_t visit;
    if (!h->gpu->timed || mc_gpu_visit(h->gpu->context, &visit))
        return;
    (void)collect(h);
    mc_gpu_leave(&visit);
}

int mc_gpu_record(meshcoll_t *h, const meshcoll_args_t *a, const mc_ranked_t *choice,
                  const mc_gpu_program_t *p, struct mc_record **call)
{
    *call = NULL;
    if (!h->hooks->on_gpu)
        return MESHCOLL_OK;
    const mc_on_gpu_t gpu = how(p);
    return h->hooks->on_gpu(h, a, &choice->strategy, &gpu, call);
}

/* Where the launch then fails, so does the mesh, and its time is not known. */
mc_gpu_timed_t *mc_gpu_times_begin(const meshcoll_t *h, const mc_gpu_place_t *at)
{
    const mc_cuda_t *const cuda = mc_cuda();
    const bool wanted = at->record || at->key;
    mc_gpu_timed_t *const t = collect(h) < MC_GPU_TIMED && wanted ? calloc(1, sizeof *t) : NULL;
    if (!t || cuda->event_create(&t->begin, 0) || cuda->event_create(&t->end, 0) ||
        cuda->event_record(t->begin, at->stream)) {
        if (t)
            free_timed(t, false);
        took(h, at->record, -1);
        return NULL;
    }
    mc_gpu_timed_t **last = &h->gpu->timed;
    while (*last)
        last = &(*last)->next;
    t->call = at->record;
    t->learns = at->key;
    if (at->key)
        t->key = *at->key;
    t->candidate = at->candidate;
    return *last = t;
}

void mc_gpu_times_free(mc_gpu_t *gpu, bool leaves)
{
    for (mc_gpu_timed_t *t; (t = gpu->timed);) {
        gpu->timed = t->next;
        free_timed(t, leaves);
    }
}
