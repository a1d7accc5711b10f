/* What the program's threads do with the proxy. */
#include "gpu/proxy/proxy.h"

#include "base/system/descriptor.h"
#include "gpu/proxy/state.h"
#include "runtime/connect/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

bool mc_proxy_is_far(const meshcoll_t *h, int32_t rank)
{
    return h->machine[rank] != h->machine[h->rank];
}

bool mc_proxy_is_needed(const meshcoll_t *h)
{
    bool needed = false;
    for (int32_t r = 0; r < h->mesh.size; r++)
        needed = needed || h->machine[r] != h->machine[0];
    return needed;
}

/* Opening ----------------------------------------------------------------------------------------- */

static int make(mc_job_t *job, const mc_gpudirect_t *direct)
{
    const size_t n = (size_t)job->mesh.size;
    mc_proxy_t *const p = calloc(1, sizeof *p);
    if (!p)
        return mc_fail_memory("a proxy");
    job->gpu->proxy = p;
    p->job = job;
    p->direct = *direct;
    p->wake = mc_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int status = p->wake >= 0 ? MESHCOLL_OK
                              : mc_fail(MESHCOLL_ERR_SYSTEM, "a proxy could not be made: %s",
                                        strerror(errno));
    p->address = mc_arena_take(&p->arena, n, sizeof(char *));
    p->address_bytes = mc_arena_take(&p->arena, n, sizeof *p->address_bytes);
    p->peer = mc_arena_take(&p->arena, n, sizeof(mc_peer_t *));
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->left, NULL);
    if (!status && p->arena.failed)
        status = mc_fail_memory("a proxy");
    if (status)
        mc_proxy_close(job);
    return status;
}

/* Opens the transport of a dimension, unless it is there. */
static int open_dim(mc_proxy_t *p, int32_t dim)
{
    mc_transport_t *t;
    if (p->transport[dim])
        return MESHCOLL_OK;
    const int status = mc_connections_twin(p->job, dim, &t);
    if (status)
        return status;
    pthread_mutex_lock(&p->lock);
    p->transport[dim] = t;
    pthread_mutex_unlock(&p->lock);
    return MESHCOLL_OK;
}

int mc_proxy_open(meshcoll_t *h)
{
    mc_job_t *const job = h->job;
    mc_gpudirect_t direct;
    int status = job->gpu->proxy ? MESHCOLL_OK : mc_gpudirect_find(&direct);
    if (!status && !job->gpu->proxy)
        status = make(job, &direct);
    if (status)
        return status;
    mc_proxy_t *const p = job->gpu->proxy;
    for (int32_t r = 0; r < h->mesh.size && !status; r++)
        if (mc_proxy_is_far(h, r))
            status = open_dim(p, mc_mesh_level(&job->mesh, job->rank, mc_job_rank(h, r)));
    return status || p->has_thread ? status : mc_proxy_thread_start(p);
}

static bool moves_device_memory(const mc_proxy_t *p, int32_t dim)
{
    return p->transport[dim] && p->transport[dim]->moves_device_memory;
}

bool mc_proxy_is_direct(const meshcoll_t *h, mc_cu_context_t context)
{
    const mc_proxy_t *const p = h->job->gpu->proxy;
    bool moves = false;
    for (int32_t d = 0; d < h->job->mesh.ndims; d++)
        moves = moves || moves_device_memory(p, d);
    return moves && p->direct.context && p->direct.context == context;
}

size_t mc_proxy_address_bytes(const meshcoll_t *h)
{
    const mc_job_t *const job = h->job;
    return mc_transports_bytes(job->gpu->proxy->transport, job->mesh.ndims);
}

void mc_proxy_address_pack(const meshcoll_t *h, char *at)
{
    const mc_job_t *const job = h->job;
    mc_transports_pack(job->gpu->proxy->transport, job->mesh.ndims, at);
}

/* The first ones stay: those of the dimension that joins the two are among them. */
int mc_proxy_end_keep(mc_proxy_end_t *end, int32_t rank, const char *packed, size_t bytes,
                      bool direct)
{
    mc_proxy_t *const p = end->mesh->job->gpu->proxy;
    const int32_t at = mc_job_rank(end->mesh, rank);
    end->is_direct[rank] = direct;
    if (p->address[at])
        return MESHCOLL_OK;
    char *const copy = mc_arena_take(&p->arena, bytes, 1);
    if (!copy)
        return mc_fail_memory("the address of a rank");
    memcpy(copy, packed, bytes);
    pthread_mutex_lock(&p->lock);
    p->address[at] = copy;
    p->address_bytes[at] = bytes;
    pthread_mutex_unlock(&p->lock);
    return MESHCOLL_OK;
}

/* Launches ---------------------------------------------------------------------------------------- */

static void give(mc_proxy_t *p, mc_route_launch_t *l)
{
    pthread_mutex_lock(&p->lock);
    *(p->first ? &p->last->next : &p->first) = l;
    p->last = l;
    atomic_store_explicit(&p->has_orders, true, memory_order_relaxed);
    mc_proxy_wake(p);
    pthread_mutex_unlock(&p->lock);
}

int mc_proxy_launch(mc_proxy_end_t *end, mc_device_program_t *program, mc_route_t *const *route,
                    const mc_device_call_t *call, uint32_t digest)
{
    int status = MESHCOLL_OK;
    for (uint32_t lane = 0; lane < 2 * program->n_peers && !status; lane++) {
        mc_route_launch_t *l;
        if (!route[lane])
            continue;
        status = mc_route_launch(route[lane], program, lane, call, digest, &l);
        if (status)
            break;
        atomic_fetch_add_explicit(&end->given, 1, memory_order_relaxed);
        give(end->mesh->job->gpu->proxy, l);
    }
    return status;
}

bool mc_proxy_is_settled(const mc_proxy_end_t *end)
{
    return atomic_load_explicit(&end->settled, memory_order_acquire) ==
           atomic_load_explicit(&end->given, memory_order_relaxed);
}

/* Ends -------------------------------------------------------------------------------------------- */

int mc_proxy_end_open(meshcoll_t *h, uint32_t blocks, uint32_t slot_bytes, bool direct,
                      mc_proxy_end_t **end)
{
    mc_proxy_end_t *const e = calloc(1, sizeof *e);
    unsigned char *const is_direct = calloc((size_t)h->mesh.size, sizeof *is_direct);
    if (!e || !is_direct) {
        free(is_direct);
        free(e);
        return mc_fail_memory("the proxy's end of a mesh");
    }
    *e = (mc_proxy_end_t){.mesh = h,
                          .blocks = blocks,
                          .slot_bytes = slot_bytes,
                          .direct = direct,
                          .is_direct = is_direct};
    *end = e;
    return MESHCOLL_OK;
}

const char *mc_proxy_why_host(const mc_proxy_end_t *end)
{
    return end->why_host;
}

static void free_memory(const mc_route_params_t *params)
{
    if (params->slots)
        mc_cuda()->free(params->slots);
    if (params->host)
        mc_cuda()->host_free(params->host);
}

/* Slots in memory of the GPU, where that is possible. */
static void take_direct(mc_proxy_end_t *end, int32_t rank, mc_route_params_t *params)
{
    const mc_job_t *const job = end->mesh->job;
    const mc_gpudirect_t *const direct = &job->gpu->proxy->direct;
    const size_t bytes = mc_route_slots_bytes(end->blocks, end->slot_bytes);
    const int32_t dim = mc_mesh_level(&job->mesh, job->rank, mc_job_rank(end->mesh, rank));
    mc_cu_address_t at;
    const char *why = NULL;
    if (direct->why_not)
        why = direct->why_not;
    else if (!moves_device_memory(job->gpu->proxy, dim))
        why = "UCX does not move memory of GPUs here";
    else if (!end->direct)
        why = "the first call of this family of meshes was on another GPU";
    else if (mc_cuda()->alloc(&at, bytes))
        why = "the GPU's memory has no room for them";
    end->why_host = why ? why : end->why_host;
    if (why)
        return;
    params->slots = at;
    params->flush = params->receives ? direct->flush : NULL;
}

/* Makes it and puts it first. */
static int make_route(mc_proxy_end_t *end, int32_t rank, bool receives)
{
    const meshcoll_t *const h = end->mesh;
    const mc_job_t *const job = h->job;
    const uint64_t context = mc_tag_context(h->context.number);
    mc_route_params_t params = {.receives = receives,
                                .parts = end->direct || end->is_direct[rank],
                                .blocks = end->blocks,
                                .slot_bytes = end->slot_bytes,
                                .own_tag = mc_tag(job->rank, MC_TAG_ROUTE, 0) | context,
                                .peers_tag =
                                    mc_tag(mc_job_rank(h, rank), MC_TAG_ROUTE, 0) | context};
    mc_cu_address_t address;
    mc_route_t *r;
    take_direct(end, rank, &params);
    int status =
        mc_cuda_pinned(mc_route_host_bytes(end->blocks, end->slot_bytes, params.slots == 0),
                       &params.host, &address);
    if (!status) {
        params.device = address;
        status = mc_route_make(&params, &r);
    }
    if (status) {
        free_memory(&params);
        return status;
    }
    r->end = end;
    r->rank = rank;
    r->sibling = end->routes;
    end->routes = r;
    return MESHCOLL_OK;
}

mc_route_t *mc_proxy_find_route(const mc_proxy_end_t *end, int32_t rank, bool receives)
{
    mc_route_t *r = end->routes;
    while (r && !(r->rank == rank && r->params.receives == receives))
        r = r->sibling;
    return r;
}

int mc_proxy_route(mc_proxy_end_t *end, int32_t rank, bool receives, mc_route_t **route)
{
    mc_route_t *const r = mc_proxy_find_route(end, rank, receives);
    const int status = r ? MESHCOLL_OK : make_route(end, rank, receives);
    if (!status)
        *route = r ? r : end->routes;
    return status;
}

/* Closing ----------------------------------------------------------------------------------------- */

/* Has the thread forget it. */
static void leave(mc_proxy_t *p, mc_proxy_end_t *end)
{
    pthread_mutex_lock(&p->lock);
    while (p->leaving)
        pthread_cond_wait(&p->left, &p->lock);
    p->leaving = end;
    atomic_store_explicit(&p->has_orders, true, memory_order_relaxed);
    mc_proxy_wake(p);
    while (p->leaving == end)
        pthread_cond_wait(&p->left, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void mc_proxy_end_close(const meshcoll_t *h, mc_proxy_end_t *end, bool leaves)
{
    if (!end)
        return;
    mc_proxy_t *const p = h->job->gpu->proxy;
    if (p && atomic_load(&end->given) > 0)
        leave(p, end);
    for (mc_route_t *r = end->routes, *next; r; r = next) {
        next = r->sibling;
        if (!leaves)
            free_memory(&r->params);
        mc_route_free(r);
    }
    free(end->is_direct);
    free(end);
}

/* UCX may have streams and events in the context. */
static void close_transports(mc_proxy_t *p)
{
    mc_cu_context_t context = p->direct.context;
    const bool entered = context && mc_cuda()->context_push(context) == 0;
    for (int32_t d = 0; d < p->job->mesh.ndims; d++) {
        mc_transport_t *const t = p->transport[d];
        if (t && p->job->failure.status && t->ops->abandon)
            t->ops->abandon(t, p->job->failure.why);
        if (t)
            t->ops->close(t);
    }
    if (entered)
        mc_cuda()->context_pop(&context);
}

void mc_proxy_close(mc_job_t *job)
{
    mc_proxy_t *const p = job->gpu->proxy;
    if (!p)
        return;
    mc_proxy_thread_stop(p);
    for (mc_route_launch_t *l = p->first, *next; l; l = next) {
        next = l->next;
        mc_route_launch_free(l);
    }
    close_transports(p);
    pthread_cond_destroy(&p->left);
    pthread_mutex_destroy(&p->lock);
    mc_descriptor_close(&p->wake);
    mc_arena_free(&p->arena);
    free(p);
    job->gpu->proxy = NULL;
}
