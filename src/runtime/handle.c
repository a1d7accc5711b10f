#include "runtime/handle.h"

#include "runtime/boxes.h"
#include "runtime/calls.h"
#include "runtime/crowd.h"
#include "runtime/explain.h"
#include "runtime/group.h"
#include "runtime/request.h"
#include "runtime/threads.h"
#include "transport/shm.h"
#include "transport/ucx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opening --------------------------------------------------------------------------------------- */

int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   meshcoll_t **handle)
{
    meshcoll_t *const h = calloc(1, sizeof *h);
    if (!h)
        return mc_fail_memory("a mesh");
    h->rank = rank;
    h->mesh = *mesh;
    mc_text_t text = mc_text(h->text, sizeof h->text);
    mc_mesh_print(mesh, &text);
    int status = mc_links_parse(settings->links, mesh, &h->links);
    if (!status)
        status = mc_choice_init(&h->choice, settings, mesh);
    if (!status)
        status = mc_explain_create(settings, &h->explain);
    if (!status)
        status = mc_threads_open(h, settings);
    if (status) {
        mc_explain_destroy(h->explain);
        free(h);
        return status;
    }
    *handle = h;
    return MESHCOLL_OK;
}

static int find_mesh(const mc_creation_t *c, const mc_settings_t *settings, mc_mesh_t *mesh)
{
    if (settings->mesh)
        return mc_mesh_fit(settings->mesh, c->oob.size, mesh);
    return mc_boxes_mesh(c->machine, c->oob.size, mesh);
}

/* The ranks that differ from this one in dimension d or further in, on one machine. */
static int open_shm(meshcoll_t *h, const int32_t *machine, int32_t d, mc_shm_access_t access)
{
    const int32_t n = mc_mesh_stride(&h->mesh, d) * h->mesh.dim[d].extent;
    const mc_shm_params_t params = {.dim = h->mesh.dim[d].name,
                                    .base = h->rank - h->rank % n,
                                    .n = n,
                                    .rank = h->rank,
                                    .access = access};
    for (int32_t r = params.base; r < params.base + n; r++)
        if (machine[r] != machine[h->rank])
            return mc_fail(MESHCOLL_ERR_TRANSPORT,
                           "dimension %s joins ranks %d and %d, which are on different machines: "
                           "its transport cannot be shm; MESHCOLL_TRANSPORTS=\"%s=tcp,self\" can",
                           params.dim, h->rank, r, params.dim);
    return mc_shm_create(&params, &h->transport[d]);
}

static bool is_shm(const char *tls)
{
    return strcmp(tls, "shm") == 0 || strcmp(tls, "shm:copy") == 0;
}

/* What shm may do, asked once where a dimension uses it. Collective: all have the same settings. */
static int find_access(const meshcoll_t *h, const mc_creation_t *c,
                       char tls[MC_MAX_DIMS][MC_TLS_TEXT], mc_shm_access_t *access)
{
    bool wanted = false;
    for (int32_t d = 0; d < h->mesh.ndims; d++)
        wanted = wanted || (h->mesh.dim[d].extent > 1 && is_shm(tls[d]));
    return wanted ? mc_shm_probe(&c->oob, c->machine, access) : MESHCOLL_OK;
}

static int open_transport(meshcoll_t *h, const mc_creation_t *c, int32_t d, const char *tls,
                          mc_shm_access_t access)
{
    if (is_shm(tls) && access != MC_SHM_NONE)
        return open_shm(h, c->machine, d, strcmp(tls, "shm") == 0 ? access : MC_SHM_COPY);
    /* processes that cannot reach each other through /proc may still share memory by name */
    const mc_ucx_params_t params = {.tls = is_shm(tls) ? "posix,sysv,cma,self" : tls,
                                    .dim = h->mesh.dim[d].name,
                                    .threads = h->threads != NULL};
    return mc_ucx_create(&params, &h->transport[d]);
}

static int open_transports(meshcoll_t *h, const mc_creation_t *c, const mc_settings_t *settings)
{
    char tls[MC_MAX_DIMS][MC_TLS_TEXT];
    mc_shm_access_t access = MC_SHM_NONE;
    int status = mc_boxes_transports(settings->transports, c->machine, &h->mesh, tls);
    if (!status)
        status = find_access(h, c, tls, &access);
    for (int32_t d = 0; d < h->mesh.ndims && !status; d++)
        if (h->mesh.dim[d].extent > 1)
            status = open_transport(h, c, d, tls[d], access);
    return status;
}

/* Addresses: each rank's, by dimension, with a length before each ------------------------------- */

static size_t packed_address_bytes(const meshcoll_t *h)
{
    size_t bytes = 0;
    for (int32_t d = 0; d < h->mesh.ndims; d++)
        bytes +=
            sizeof(uint64_t) + (h->transport[d] ? (h->transport[d]->address_bytes + 7) / 8 * 8 : 0);
    return bytes;
}

static void pack_addresses(const meshcoll_t *h, char *at)
{
    for (int32_t d = 0; d < h->mesh.ndims; d++) {
        const mc_transport_t *const t = h->transport[d];
        const uint64_t bytes = t ? t->address_bytes : 0;
        memcpy(at, &bytes, sizeof bytes);
        if (bytes)
            memcpy(at + sizeof bytes, t->address, bytes);
        at += sizeof bytes + (bytes + 7) / 8 * 8;
    }
}

static const void *address_of(const meshcoll_t *h, int32_t rank, int32_t dim)
{
    if (!h->addresses)
        return NULL;
    const char *at = h->addresses + (size_t)rank * h->address_stride;
    for (int32_t d = 0; d < dim; d++) {
        uint64_t bytes;
        memcpy(&bytes, at, sizeof bytes);
        at += sizeof bytes + (bytes + 7) / 8 * 8;
    }
    return at + sizeof(uint64_t);
}

static int gather(const meshcoll_oob_t *oob, const void *in, void *out, size_t bytes)
{
    if (oob->allgather(oob->context, in, out, bytes))
        return mc_fail(MESHCOLL_ERR_TRANSPORT, "the out-of-band allgather failed");
    return MESHCOLL_OK;
}

static int share_addresses(meshcoll_t *h)
{
    const size_t p = (size_t)h->mesh.size;
    uint64_t most = 0, mine = packed_address_bytes(h);
    uint64_t *const sizes = calloc(p, sizeof *sizes);
    int status = sizes ? gather(&h->oob, &mine, sizes, sizeof mine) : mc_fail_memory("addresses");
    for (size_t r = 0; r < p && !status; r++)
        most = sizes[r] > most ? sizes[r] : most;
    free(sizes);
    if (status)
        return status;
    char *const own = calloc(1, most);
    h->addresses = malloc(p * most);
    h->address_stride = most;
    if (own && h->addresses) {
        pack_addresses(h, own);
        status = gather(&h->oob, own, h->addresses, most);
    } else {
        status = mc_fail_memory("addresses");
    }
    free(own);
    return status;
}

/* Creating and destroying ----------------------------------------------------------------------- */

/* Requests outlive the handle, as the user's; how many were still running. Nothing writes to them
 * any more. */
static uint32_t give_up(meshcoll_request_t *list)
{
    uint32_t n = 0;
    for (meshcoll_request_t *r = list, *next; r; r = next) {
        next = r->next_of_all;
        n += r->running;
        r->mesh = NULL;
        if (r->running)
            r->status = MESHCOLL_ERR_INVALID_ARG;
        r->running = false;
        if (r->released)
            mc_request_drop(r);
    }
    return n;
}

static void handle_free(meshcoll_t *h)
{
    mc_handle_leave(h);
    mc_threads_close(h);
    for (int32_t d = 0; d < h->mesh.ndims; d++)
        if (h->transport[d])
            h->transport[d]->ops->close(h->transport[d]);
    const uint32_t n = give_up(h->all);
    if (n > 0)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: %u requests were still running and were given up; what their "
                "buffers hold is undefined",
                n);
    mc_explain_destroy(h->explain);
    free(h->addresses);
    free(h->peer);
    mc_calls_free_memory(h);
    mc_group_free(h);
    free(h);
}

static int create(const mc_creation_t *c, mc_settings_t *settings, meshcoll_t **handle)
{
    mc_mesh_t mesh;
    meshcoll_t *h = NULL;
    double crowd = 0;
    int status = mc_settings_share(&c->oob, settings);
    if (status)
        return status;
    status = find_mesh(c, settings, &mesh);
    if (!status)
        status = mc_handle_open(&mesh, c->oob.rank, settings, &h);
    if (!status)
        status = open_transports(h, c, settings);
    status = mc_agree(&c->oob, status);
    if (!status)
        status = mc_crowd_find(&c->oob, c->machine, &crowd);
    if (!status) {
        mc_lock(h);
        h->crowded = crowd > 1;
        mc_unlock(h);
        h->oob = c->oob;
        status = share_addresses(h);
    }
    if (status) {
        if (h)
            handle_free(h);
        return status;
    }
    h->free_context = c->free_context;
    *handle = h;
    return MESHCOLL_OK;
}

int mc_handle_create(const mc_creation_t *creation, meshcoll_t **mesh)
{
    mc_settings_t settings = {0};
    const meshcoll_oob_t *const oob = &creation->oob;
    if (oob->size > 1 << MC_TAG_SOURCE_BITS)
        return mc_fail(MESHCOLL_ERR_UNSUPPORTED, "%d ranks are too many: a mesh has at most %d",
                       oob->size, 1 << MC_TAG_SOURCE_BITS);
    const int status = mc_agree(oob, mc_settings_read(creation->params, &settings));
    if (!status && creation->tuned)
        settings.links_from = creation->tuned;
    const int created = status ? status : create(creation, &settings, mesh);
    mc_settings_free(&settings);
    return created;
}

static void oob_barrier(const meshcoll_t *h)
{
    char *const all = h->oob.allgather ? malloc((size_t)h->mesh.size) : NULL;
    const char one = 1;
    if (all)
        h->oob.allgather(h->oob.context, &one, all, 1);
    free(all);
}

void meshcoll_destroy(meshcoll_t *mesh)
{
    if (!mesh)
        return;
    /* nobody closes what somebody still sends through */
    oob_barrier(mesh);
    mc_threads_close(mesh);
    if (mesh->explain)
        mc_explain_print(mesh);
    mc_calls_forget(mesh);
    if (mesh->group_open)
        mc_fail(MESHCOLL_ERR_INVALID_ARG,
                "meshcoll_destroy: a group was open; its %u calls were not made", mesh->group->n);
    if (mesh->free_context)
        mesh->free_context(mesh->oob.context);
    handle_free(mesh);
}

/* Connections ----------------------------------------------------------------------------------- */

static uint32_t find_peer(const meshcoll_t *h, int32_t rank)
{
    uint32_t lo = 0, hi = h->n_peers;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (h->peer[mid]->rank < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void poll_transport(meshcoll_t *h, mc_transport_t *t)
{
    for (int32_t i = 0; i < h->n_polled; i++)
        if (h->polled[i] == t)
            return;
    h->polled[h->n_polled++] = t; /* at most one per dimension */
}

int mc_handle_connect(meshcoll_t *h, int32_t rank, mc_peer_t **peer)
{
    const uint32_t at = find_peer(h, rank);
    if (at < h->n_peers && h->peer[at]->rank == rank) {
        *peer = h->peer[at];
        return MESHCOLL_OK;
    }
    if (h->n_peers == h->peer_capacity) {
        const uint32_t capacity = h->peer_capacity ? 2 * h->peer_capacity : 16;
        mc_peer_t **const grown = realloc(h->peer, capacity * sizeof *grown);
        if (!grown)
            return mc_fail_memory("connections");
        h->peer = grown;
        h->peer_capacity = capacity;
    }
    const int32_t dim = mc_mesh_level(&h->mesh, h->rank, rank);
    mc_transport_t *const t = h->transport[dim];
    const int status = t->ops->connect(t, rank, address_of(h, rank, dim), peer);
    if (status)
        return status;
    memmove(&h->peer[at + 1], &h->peer[at], (h->n_peers - at) * sizeof(mc_peer_t *));
    h->peer[at] = *peer;
    h->n_peers++;
    poll_transport(h, t);
    return MESHCOLL_OK;
}

/* Progress -------------------------------------------------------------------------------------- */

void mc_handle_break(meshcoll_t *h, int status)
{
    if (h->broken)
        return;
    h->broken = status;
    snprintf(h->why, sizeof h->why, "%s", meshcoll_last_error());
}

int mc_handle_check(const meshcoll_t *h)
{
    return h->broken ? mc_fail(h->broken, "this mesh failed before: %s; destroy it", h->why)
                     : MESHCOLL_OK;
}

/* Asking ---------------------------------------------------------------------------------------- */

static int no_mesh(const char *function)
{
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s: the mesh is NULL", function);
}

int meshcoll_rank(const meshcoll_t *mesh)
{
    return mesh ? mesh->rank : no_mesh("meshcoll_rank");
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
