#include "gpu/mesh/gpu.h"

#include "compose/algorithms/placement.h"
#include "runtime/call/args.h"
#include "runtime/progress/failure.h"

#include <stdatomic.h>
#include <stdlib.h>

/* What the driver tells of a pointer. */
typedef struct {
    unsigned type, managed;
    int device;
    mc_cu_context_t context;
} told_t;

static mc_cu_result_t ask(const mc_cuda_t *cuda, const void *at, told_t *told)
{
    mc_cu_pointer_attribute_t what[] = {MC_CU_POINTER_TYPE, MC_CU_POINTER_MANAGED,
                                        MC_CU_POINTER_DEVICE, MC_CU_POINTER_CONTEXT};
    void *answer[] = {&told->type, &told->managed, &told->device, &told->context};
    return cuda->pointer_attributes(MC_COUNT(what), what, answer, (mc_cu_address_t)(uintptr_t)at);
}

/* In a thread without a context it tells nothing (triton-lang/triton pull 5276): asks in `known`, one of the program's. */
static mc_cu_result_t ask_in(const mc_cuda_t *cuda, mc_cu_context_t known, const void *at,
                             told_t *told)
{
    mc_cu_context_t none = NULL;
    if (!known || cuda->missing || cuda->context_current(&none) || none ||
        cuda->context_push(known))
        return MC_CU_ERROR_INVALID_CONTEXT;
    const mc_cu_result_t result = ask(cuda, at, told);
    (void)cuda->context_pop(&none);
    return result;
}

/* The driver fails for memory that it does not know, for a context without unified addresses, and
 * before it is initialised; some versions succeed with zeros. All that is plain host memory. */
mc_pointer_t mc_pointer(const void *at)
{
    static _Atomic(mc_cu_context_t) known;
    mc_pointer_t found = {.kind = MC_MEMORY_HOST};
    told_t told = {0};
    const mc_cuda_t *const cuda = mc_cuda();
    mc_cu_result_t result = cuda && at ? ask(cuda, at, &told) : MC_CU_ERROR_NOT_INITIALIZED;
    if (result == MC_CU_ERROR_INVALID_CONTEXT)
        result = ask_in(cuda, atomic_load_explicit(&known, memory_order_relaxed), at, &told);
    if (result)
        return found;
    if (told.managed)
        found.kind = MC_MEMORY_MANAGED;
    else if (told.type == MC_CU_TYPE_DEVICE)
        found.kind = MC_MEMORY_DEVICE;
    else if (told.type == MC_CU_TYPE_HOST)
        found.kind = MC_MEMORY_REGISTERED;
    found.device = told.device;
    found.context = told.context;
    if (told.context)
        atomic_store_explicit(&known, told.context, memory_order_relaxed);
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
