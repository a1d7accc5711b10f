#include "gpu/call/call.h"

#include "gpu/launch/launch.h"
#include "gpu/mesh/gpu.h"
#include "gpu/mesh/meeting.h"
#include "runtime/call/args.h"
#include "runtime/call/leads.h"
#include "runtime/progress/failure.h"

#include <stdio.h>
#include <stdlib.h>

/* What is to be registered. */
typedef struct {
    void *buffer;
    size_t bytes;
    mc_pointer_t pointer;
} memory_t;

/* Arguments --------------------------------------------------------------------------------------- */

static int check_kind(const mc_pointer_t *p)
{
    if (p->kind == MC_MEMORY_DEVICE)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                   "meshcoll_register: expected device memory, got %s, %s",
                   mc_memory_kind_name(p->kind),
                   p->kind == MC_MEMORY_MANAGED ? "which the driver does not share with other "
                                                  "processes"
                                                : "which needs no registration");
}

static int check_apart(const meshcoll_t *h, const memory_t *m)
{
    const mc_gpu_window_t *w = h->gpu ? h->gpu->registrations : NULL;
    const uintptr_t at = (uintptr_t)m->buffer;
    for (; w; w = w->next)
        if (at < (uintptr_t)w->buffer + w->bytes && (uintptr_t)w->buffer < at + m->bytes)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "meshcoll_register: the buffer overlaps one that is registered on this "
                           "mesh: deregister that first");
    return MESHCOLL_OK;
}

static int check_arguments(const meshcoll_t *h, const memory_t *m, const void *registration)
{
    if (!registration)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_register: expected a pointer to store the registration in, got "
                       "NULL");
    if (!m->buffer || m->bytes == 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_register: expected a buffer of at least one byte, got %zu at %p",
                       m->bytes, m->buffer);
    if (mc_group_is_open(h))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_register: a group is open on this mesh: end it first");
    const int status = check_kind(&m->pointer);
    return status ? status : check_apart(h, m);
}

/* All ranks find the same. */
static int check_bytes(const mc_gpu_meeting_t *m)
{
    const mc_order_t *const order = &m->mesh->order;
    const uint64_t first = mc_gpu_note(m, mc_mesh_rank_of(order, 0))->bytes;
    for (int32_t r = 1; r < m->mesh->mesh.size; r++) {
        const uint64_t bytes = mc_gpu_note(m, mc_mesh_rank_of(order, r))->bytes;
        if (bytes != first)
            return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                           "meshcoll_register: rank 0 registers %llu bytes, rank %d %llu: expected "
                           "as many on all ranks",
                           (unsigned long long)first, (int)r, (unsigned long long)bytes);
    }
    return MESHCOLL_OK;
}

/* Mapping ----------------------------------------------------------------------------------------- */

/* Does this rank map what a peer registers? The peer then maps this rank's. */
static bool reaches(const mc_gpu_arena_t *a, int32_t peer)
{
    const int32_t own = a->layout.rank;
    return peer != own && a->layout.machine[own] == a->layout.machine[peer] &&
           !mc_gpu_arena_by_host(a, own, peer);
}

static bool reaches_any(const mc_gpu_arena_t *a)
{
    bool any = false;
    for (int32_t r = 0; r < a->layout.ranks; r++)
        any = any || reaches(a, r);
    return any;
}

static int cannot_share(int status)
{
    if (!status)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                   "meshcoll_register: %s; expected memory of cudaMalloc, not of a pool or of "
                   "PyTorch's expandable segments; calls go on without",
                   meshcoll_last_error());
}

/* Memory is shared by whole allocations. */
static int export(const mc_gpu_t *gpu, const memory_t *m, mc_gpu_note_t *own)
{
    const mc_cuda_t *const cuda = mc_cuda();
    const mc_cu_address_t at = (mc_cu_address_t)(uintptr_t)m->buffer;
    mc_cu_address_t base = 0;
    size_t size = 0;
    if (m->pointer.device != gpu->device)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_register: the buffer is memory of GPU %d, but this mesh's calls "
                       "began on GPU %d: expected one GPU for all of them",
                       m->pointer.device, gpu->device);
    const int status =
        mc_cuda_status(cuda->address_range(&base, &size, at), "tell where an allocation begins");
    if (status)
        return cannot_share(status);
    if (m->bytes > size - (at - base))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "meshcoll_register: the buffer has %zu bytes, but its allocation ends after "
                       "%zu: expected it within one allocation",
                       m->bytes, (size_t)(size - (at - base)));
    own->at = at - base;
    return reaches_any(&gpu->arena)
               ? cannot_share(mc_cuda_status(cuda->ipc_get(&own->handle, base),
                                             "share memory with other processes (CUDA IPC)"))
               : MESHCOLL_OK;
}

static int map_peer(const mc_gpu_meeting_t *m, int32_t peer, mc_gpu_window_t *w)
{
    const mc_gpu_note_t *const note = mc_gpu_note(m, peer);
    char what[96];
    snprintf(what, sizeof what, "open the memory that rank %d registers",
             (int)mc_comm_rank_of(&m->mesh->order, peer));
    const int status =
        mc_cuda_status(mc_cuda()->ipc_open(&w->mapped[peer], note->handle, MC_CU_IPC_PEER), what);
    if (status)
        w->mapped[peer] = 0;
    else
        w->peer[peer] = w->mapped[peer] + note->at;
    return status;
}

static int map_peers(const mc_gpu_meeting_t *m, mc_gpu_window_t *w)
{
    const mc_gpu_arena_t *const arena = &m->mesh->gpu->arena;
    int status = MESHCOLL_OK;
    w->peer[arena->layout.rank] = (mc_cu_address_t)(uintptr_t)w->buffer;
    for (int32_t r = 0; r < arena->layout.ranks && !status; r++)
        if (reaches(arena, r))
            status = map_peer(m, r, w);
    return status;
}

/* Registering ------------------------------------------------------------------------------------- */

static mc_gpu_window_t *make_window(meshcoll_t *h, uint32_t number, const memory_t *m)
{
    const size_t ranks = (size_t)h->mesh.size;
    mc_gpu_window_t *const w = calloc(1, sizeof *w + 2 * ranks * sizeof *w->mapped);
    if (!w)
        return NULL;
    w->is.mesh = h;
    w->number = number;
    w->buffer = m->buffer;
    w->bytes = m->bytes;
    w->peer = w->mapped + ranks;
    return w;
}

/* The context is current. No rank returns before all have closed what they opened of a registration
 * that failed, as its memory may be freed then. */
static int register_together(mc_gpu_meeting_t *m, const memory_t *memory,
                             struct meshcoll_registration **registration)
{
    meshcoll_t *const h = m->mesh;
    char why[MC_GPU_WHY + 64];
    mc_gpu_window_t *const w = make_window(h, m->number, memory);
    int status = w ? export(h->gpu, memory, m->own) : mc_fail_memory("a registration");
    status = mc_gpu_meet(m, status);
    if (!status) {
        status = mc_gpu_meet(m, map_peers(m, w));
        if (status) {
            snprintf(why, sizeof why, "%s", meshcoll_last_error());
            mc_gpu_window_unmap(w, h->mesh.size);
            (void)(h->job->failure.status ? 0 : mc_gpu_meet(m, MESHCOLL_OK));
            status = mc_fail(status, "%s", why);
        }
    }
    if (status && w)
        mc_gpu_window_free(h->gpu, w);
    if (status)
        return status;
    w->next = h->gpu->registrations;
    h->gpu->registrations = w;
    *registration = &w->is;
    return MESHCOLL_OK;
}

static int enter_together(mc_gpu_meeting_t *m, const memory_t *memory,
                          struct meshcoll_registration **registration)
{
    mc_gpu_visit_t visit;
    const int status = mc_gpu_visit(m->mesh->gpu->context, &visit);
    if (status) /* others wait for this rank */
        return mc_gpu_meet(m, status);
    const int made = register_together(m, memory, registration);
    mc_gpu_leave(&visit);
    return made;
}

int mc_gpu_register(meshcoll_t *h, void *buffer, size_t bytes,
                    struct meshcoll_registration **registration)
{
    const uint32_t number = mc_take_numbers(h, false, false).own;
    const memory_t memory = {buffer, bytes, mc_pointer(buffer)};
    mc_gpu_meeting_t m;
    bool agreed = true;
    int status = mc_failure_check(h);
    if (!status)
        status = mc_gpu_check_ranks(h);
    if (status)
        return status;
    status = mc_gpu_meeting_open(h, number, &m);
    if (status)
        return mc_gpu_fail_alone(h, status);
    m.own->bytes = bytes;
    status = mc_gpu_meet(&m, check_arguments(h, &memory, registration));
    if (!status)
        status = check_bytes(&m);
    if (!status)
        status = mc_gpu_open(h, &memory.pointer, number, &agreed);
    if (!agreed)
        status = mc_gpu_fail_alone(h, status);
    if (!status)
        status = enter_together(&m, &memory, registration);
    mc_arena_free(&m.arena);
    return status;
}

/* Deregistering ----------------------------------------------------------------------------------- */

int mc_gpu_deregister(struct meshcoll_registration *registration)
{
    mc_gpu_window_t *const w = (mc_gpu_window_t *)registration;
    meshcoll_t *const h = registration->mesh;
    const uint32_t number = mc_take_numbers(h, false, false).own;
    mc_gpu_meeting_t m;
    mc_gpu_visit_t visit;
    int status = mc_failure_check(h);
    if (status)
        return status;
    status = mc_gpu_meeting_open(h, number, &m);
    if (status)
        return mc_gpu_fail_alone(h, status);
    mc_gpu_await(h);
    const int outside = mc_gpu_visit(h->gpu->context, &visit);
    status = mc_gpu_meet(&m, outside ? outside : mc_gpu_programs_drop(h->gpu, w));
    if (!status) {
        mc_gpu_window_unmap(w, h->mesh.size);
        status = mc_gpu_meet(&m, MESHCOLL_OK);
    }
    if (!outside)
        mc_gpu_leave(&visit);
    if (!status)
        mc_gpu_window_free(h->gpu, w);
    mc_arena_free(&m.arena);
    return status;
}
