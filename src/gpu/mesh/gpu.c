#include "gpu/mesh/gpu.h"

#include "compose/algorithms/placement.h"
#include "runtime/call/args.h"
#include "runtime/progress/failure.h"

#include <stdlib.h>

/* The driver fails for memory that it does not know, for a context without unified addresses, and
 * before it is initialised; some versions succeed with zeros. All that is plain host memory. */
mc_pointer_t mc_pointer(const void *at)
{
    mc_pointer_t found = {.kind = MC_MEMORY_HOST};
    unsigned type = 0, managed = 0;
    int device = 0;
    mc_cu_context_t context = NULL;
    mc_cu_pointer_attribute_t ask[] = {MC_CU_POINTER_TYPE, MC_CU_POINTER_MANAGED,
                                       MC_CU_POINTER_DEVICE, MC_CU_POINTER_CONTEXT};
    void *answer[] = {&type, &managed, &device, &context};
    const mc_cuda_t *const cuda = mc_cuda();
    if (!cuda || !at ||
        cuda->pointer_attributes(MC_COUNT(ask), ask, answer, (mc_cu_address_t)(uintptr_t)at) != 0)
        return found;
    if (managed)
        found.kind = MC_MEMORY_MANAGED;
    else if (type == MC_CU_TYPE_DEVICE)
        found.kind = MC_MEMORY_DEVICE;
    else if (type == MC_CU_TYPE_HOST)
        found.kind = MC_MEMORY_REGISTERED;
    found.device = device;
    found.context = context;
    return found;
}

mc_gpu_job_t *mc_gpu_job(mc_job_t *job)
{
    if (!job->gpu && !(job->gpu = calloc(1, sizeof *job->gpu)))
        mc_fail_memory("calls on device memory");
    return job->gpu;
}

int mc_gpu_fail_alone(meshcoll_t *h, int status)
{
    mc_failure_break(h, status);
    return mc_failure_check(h);
}

int mc_gpu_context(const mc_pointer_t *buffer, mc_cu_context_t *context)
{
    mc_cu_context_t found = buffer->context;
    if (!found && mc_cuda()->context_current(&found))
        found = NULL;
    if (!found)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "no CUDA context is current in this thread: expected that of the GPU whose "
                       "memory is passed (cudaSetDevice)");
    *context = found;
    return MESHCOLL_OK;
}

int mc_gpu_visit(mc_cu_context_t context, mc_gpu_visit_t *visit)
{
    const mc_cuda_t *const cuda = mc_cuda();
    mc_gpu_visit_t v = {cuda, MC_CU_CAPTURE_RELAXED, false};
    const int status = mc_cuda_status(cuda->context_push(context), "use its context");
    if (status)
        return status;
    v.changed = cuda->capture_mode(&v.mode) == 0; /* where it fails, nothing is captured */
    *visit = v;
    return MESHCOLL_OK;
}

void mc_gpu_leave(mc_gpu_visit_t *visit)
{
    mc_cu_context_t was;
    if (visit->changed)
        (void)visit->cuda->capture_mode(&visit->mode);
    (void)visit->cuda->context_pop(&was);
}

int mc_gpu_memory_take(mc_gpu_t *gpu, size_t bytes, const char *what, mc_gpu_memory_t **memory)
{
    for (mc_gpu_memory_t **at = &gpu->spare, *m; (m = *at); at = &m->next)
        if (m->bytes >= bytes) {
            *at = m->next;
            *memory = m;
            return MESHCOLL_OK;
        }
    mc_gpu_memory_t *const m = calloc(1, sizeof *m);
    if (!m)
        return mc_fail_memory("memory of a GPU");
    const int status = mc_cuda_status(mc_cuda()->alloc(&m->at, bytes), what);
    m->bytes = bytes;
    if (status)
        free(m);
    else
        *memory = m;
    return status;
}

void mc_gpu_memory_return(mc_gpu_t *gpu, mc_gpu_memory_t *memory)
{
    memory->next = gpu->spare;
    gpu->spare = memory;
}

void mc_gpu_memory_free(mc_gpu_memory_t **list, bool leaves)
{
    for (mc_gpu_memory_t *m = *list, *next; m; m = next) {
        next = m->next;
        if (!leaves)
            mc_cuda()->free(m->at);
        free(m);
    }
    *list = NULL;
}

/* Registered memory ---------------------------------------------------------------------------------- */

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
    for (int32_t r = 0; r < ranks; r++) {
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
    free(w);
}
