#include "runtime/connect/connections.h"

#include "runtime/connect/greet.h"
#include "runtime/progress/failure.h"
#include "transport/ucx.h"
#include "transport/ucx_names.h"

#include <stdio.h>
#include <string.h>

/* Transports ------------------------------------------------------------------------------------ */

/* Opens shared memory between the ranks that differ from this one in dimension d or inner ones; all
 * must be on one machine. */
static int open_shm(mc_job_t *job, int32_t d, mc_shm_access_t access)
{
    int32_t first;
    const int32_t n = mc_mesh_span(&job->mesh, d, job->rank, &first);
    const mc_shm_params_t params = {.dim = job->mesh.dim[d].name,
                                    .base = first,
                                    .n = n,
                                    .rank = job->rank,
                                    .access = access,
                                    .oversubscribed = job->oversubscribed};
    for (int32_t r = params.base; r < params.base + n; r++)
        if (job->machine[r] != job->machine[job->rank])
            return mc_fail(MESHCOLL_ERR_TRANSPORT,
                           "dimension %s joins ranks %d and %d, which are on different machines: "
                           "its transport cannot be shm; MESHCOLL_TRANSPORTS=\"%s=tcp,self\" can",
                           params.dim, mc_comm_rank_of(&job->order, job->rank),
                           mc_comm_rank_of(&job->order, r), params.dim);
    return mc_shm_create(&params, &job->connections.transport[d]);
}

static bool is_shm(const char *tls)
{
    return strcmp(tls, "shm") == 0 || strcmp(tls, "shm:copy") == 0;
}

mc_shm_access_t mc_connections_want_shm(const mc_job_t *job)
{
    mc_shm_access_t most = MC_SHM_NONE;
    for (int32_t d = 0; d < job->mesh.ndims; d++)
        if (job->mesh.dim[d].extent > 1 && is_shm(job->connections.tls[d]))
            most = strcmp(job->connections.tls[d], "shm") == 0 || most == MC_SHM_READ ? MC_SHM_READ
                                                                                      : MC_SHM_COPY;
    return most;
}

/* Where processes may not open each other's descriptors, UCX's transports that do so (posix) or
 * that read another process's memory (cma) fail too, and only at the first large message, by ending
 * the program. */
static const char *instead_of_shm(mc_shm_access_t access)
{
    return access == MC_SHM_KEYS ? "sysv,self" : mc_boxes_network();
}

static int open_ucx(const mc_job_t *job, int32_t d, bool threads, mc_transport_t **transport)
{
    const char *const tls = is_shm(job->connections.tls[d])
                                ? instead_of_shm(job->connections.access)
                                : job->connections.tls[d];
    const char *const devices = mc_ucx_devices(tls, job->connections.devices);
    char with_devices[MC_TLS_TEXT + MC_DEVICES_TEXT];
    if (strlen(devices) >= MC_DEVICES_TEXT)
        return mc_fail(MESHCOLL_ERR_PARSE, "MESHCOLL_NET_DEVICES: at most %d characters, got %zu",
                       MC_DEVICES_TEXT - 1, strlen(devices));
    snprintf(with_devices, sizeof with_devices, "%s%s%s", tls, *devices ? "@" : "", devices);
    const mc_ucx_params_t params = {.tls = with_devices,
                                    .dim = job->mesh.dim[d].name,
                                    .threads = threads,
                                    .where = job->connections.where};
    return mc_ucx_create(&params, transport);
}

static int open_transport(mc_job_t *job, int32_t d)
{
    const char *const tls = job->connections.tls[d];
    if (is_shm(tls) && job->connections.access >= MC_SHM_COPY)
        return open_shm(job, d, strcmp(tls, "shm") == 0 ? job->connections.access : MC_SHM_COPY);
    return open_ucx(job, d, job->threads != NULL, &job->connections.transport[d]);
}

int mc_connections_twin(const mc_job_t *job, int32_t d, mc_transport_t **transport)
{
    mc_transport_t *twin;
    const int status = open_ucx(job, d, true, &twin);
    if (status)
        return status;
    twin->known_as = job->order.comm_rank;
    *transport = twin;
    return MESHCOLL_OK;
}

int mc_connections_open(mc_job_t *job)
{
    int status = MESHCOLL_OK;
    for (int32_t d = 0; d < job->mesh.ndims && !status; d++) {
        if (job->mesh.dim[d].extent == 1)
            continue;
        status = open_transport(job, d);
        if (!status)
            job->connections.transport[d]->known_as = job->order.comm_rank;
    }
    return status;
}

void mc_connections_limit(const meshcoll_t *h)
{
    for (int32_t d = 0; d < h->mesh.ndims; d++) {
        const double eager = h->links.correction[d].eager;
        mc_transport_t *const t = h->transport[d];
        if (t && eager > 0 && t->eager > 0)
            t->eager = (size_t)eager;
    }
}

/* Addresses: of each rank, by dimension, each preceded by its length -------------------------- */

size_t mc_transports_bytes(mc_transport_t *const *transport, int32_t n)
{
    size_t bytes = 0;
    for (int32_t d = 0; d < n; d++)
        bytes += sizeof(uint64_t) + (transport[d] ? (transport[d]->address_bytes + 7) / 8 * 8 : 0);
    return bytes;
}

void mc_transports_pack(mc_transport_t *const *transport, int32_t n, char *at)
{
    for (int32_t d = 0; d < n; d++) {
        const mc_transport_t *const t = transport[d];
        const uint64_t bytes = t ? t->address_bytes : 0;
        memcpy(at, &bytes, sizeof bytes);
        if (bytes)
            memcpy(at + sizeof bytes, t->address, bytes);
        at += sizeof bytes + (bytes + 7) / 8 * 8;
    }
}

/* The address of a dimension in packed ones, and its length; NULL: they end before its end. */
static const char *find_packed(const char *packed, size_t bytes, int32_t dim, uint64_t *length)
{
    for (int32_t d = 0; bytes >= sizeof *length; d++) {
        memcpy(length, packed, sizeof *length);
        bytes -= sizeof *length;
        packed += sizeof *length;
        if (*length > bytes || d == dim)
            return *length > bytes ? NULL : packed;
        const size_t padded = (*length + 7) / 8 * 8, skipped = padded < bytes ? padded : bytes;
        bytes -= skipped;
        packed += skipped;
    }
    return NULL;
}

const void *mc_transports_find(const char *packed, size_t bytes, int32_t dim)
{
    uint64_t length = 0;
    const char *const at = find_packed(packed, bytes, dim, &length);
    return length > MC_TRANSPORT_WHERE ? at : NULL;
}

void mc_addresses_pack(const mc_job_t *job, char *at)
{
    mc_transports_pack(job->connections.transport, job->mesh.ndims, at);
}

int mc_addresses_check_bytes(uint64_t bytes)
{
    if (bytes % 8 == 0 && bytes <= MC_ADDRESSES_MOST)
        return MESHCOLL_OK;
    return mc_fail(MESHCOLL_ERR_TRANSPORT,
                   "a rank's addresses take %llu bytes; expected a multiple of 8, and %d at most",
                   (unsigned long long)bytes, MC_ADDRESSES_MOST);
}

/* Addresses in shared memory are all of one length; of the others UCX alone reads what follows the text. */
static bool is_length(const mc_transport_t *t, uint64_t bytes)
{
    if (!t)
        return bytes == 0;
    return t->address_least > 0 ? bytes >= t->address_least : bytes == t->address_bytes;
}

static const char *packed_of(const mc_job_t *job, int32_t gathered)
{
    return job->connections.addresses + (size_t)gathered * job->connections.address_stride;
}

int mc_addresses_check(const mc_job_t *job)
{
    for (int32_t r = 0; r < job->mesh.size; r++)
        for (int32_t d = 0; d < job->mesh.ndims; d++) {
            uint64_t length;
            if (!find_packed(packed_of(job, r), job->connections.address_stride, d, &length) ||
                !is_length(job->connections.transport[d], length))
                return mc_fail(MESHCOLL_ERR_TRANSPORT,
                               "the address of rank %d along dimension %s has a wrong length: do "
                               "all ranks use the same version of meshcoll?",
                               r, job->mesh.dim[d].name);
        }
    return MESHCOLL_OK;
}

void mc_addresses_hold(const mc_job_t *job, int32_t rank, const char *packed, size_t bytes)
{
    const int32_t dim = rank == job->rank ? -1 : mc_mesh_level(&job->mesh, job->rank, rank);
    mc_transport_t *const t = dim < 0 ? NULL : job->connections.transport[dim];
    uint64_t length;
    const char *const at = t && t->ops->hold ? find_packed(packed, bytes, dim, &length) : NULL;
    if (at && length == t->address_bytes)
        t->ops->hold(t, rank, at);
}

static const void *address_of(const mc_job_t *job, int32_t rank, int32_t dim)
{
    uint64_t length;
    if (!job->connections.addresses)
        return NULL;
    return find_packed(packed_of(job, mc_comm_rank_of(&job->order, rank)),
                       job->connections.address_stride, dim, &length);
}

void mc_rank_where(const mc_job_t *job, int32_t rank, char where[MC_TRANSPORT_WHERE])
{
    const int32_t dim = rank == job->rank ? -1 : mc_mesh_level(&job->mesh, job->rank, rank);
    const mc_transport_t *const t = dim < 0 ? NULL : job->connections.transport[dim];
    const char *const address = t && t->address_least > 0 ? address_of(job, rank, dim) : NULL;
    memset(where, 0, MC_TRANSPORT_WHERE);
    if (address)
        memcpy(where, address, MC_TRANSPORT_WHERE - 1);
    mc_text_clean(where);
}

int32_t mc_handle_wire(const meshcoll_t *h)
{
    int32_t d = h->mesh.ndims - 1;
    while (d >= 0 && !(h->transport[d] && h->transport[d]->streams))
        d--;
    return d;
}

mc_pacing_t mc_handle_pacing(const meshcoll_t *h)
{
    mc_pacing_t pacing = mc_pacing_of(&h->links, &h->mesh, mc_handle_wire(h));
    pacing.concurrent = h->share.concurrent;
    if (pacing.wire >= 0 && h->share.window > 0)
        pacing.window = h->share.window;
    return pacing;
}

/* Returns the dimensions whose transports stream, one bit each. */
static uint64_t streaming(const mc_job_t *job)
{
    uint64_t bits = 0;
    for (int32_t d = 0; d < job->mesh.ndims; d++)
        if (job->connections.transport[d] && job->connections.transport[d]->streams)
            bits |= UINT64_C(1) << d;
    return bits;
}

mc_addresses_summary_t mc_addresses_summary(const mc_job_t *job)
{
    return (mc_addresses_summary_t){
        .bytes = mc_transports_bytes(job->connections.transport, job->mesh.ndims),
        .streams = streaming(job)};
}

void mc_addresses_agree(mc_job_t *job, const mc_addresses_summary_t *all)
{
    for (int32_t d = 0; d < job->mesh.ndims; d++)
        if (job->connections.transport[d])
            job->connections.transport[d]->streams = all->streams >> d & 1;
}

/* Connections ----------------------------------------------------------------------------------- */

static uint32_t find_peer(const mc_job_t *job, int32_t rank)
{
    uint32_t lo = 0, hi = job->connections.n_peers;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (job->connections.peer[mid]->rank < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void mc_job_poll(mc_job_t *job, mc_transport_t *t)
{
    for (int32_t i = 0; i < job->connections.n_polled; i++)
        if (job->connections.polled[i] == t)
            return;
    t->place = UINT32_C(1) << job->connections.n_polled;
    job->connections.polled[job->connections.n_polled++] = t; /* at most one per dimension */
}

static int link_rank(mc_job_t *job, int32_t rank, mc_peer_t **peer)
{
    const uint32_t at = find_peer(job, rank);
    if (at < job->connections.n_peers && job->connections.peer[at]->rank == rank) {
        *peer = job->connections.peer[at];
        return MESHCOLL_OK;
    }
    mc_peer_t **const grown = mc_grown(job->connections.peer, job->connections.n_peers,
                                       &job->connections.peer_capacity, sizeof *grown);
    if (!grown)
        return mc_fail_memory("connections");
    job->connections.peer = grown;
    const int32_t dim = mc_mesh_level(&job->mesh, job->rank, rank);
    mc_transport_t *const t = job->connections.transport[dim];
    const int status = t->ops->connect(t, rank, address_of(job, rank, dim), peer);
    if (status)
        return status;
    memmove(&job->connections.peer[at + 1], &job->connections.peer[at],
            (job->connections.n_peers - at) * sizeof(mc_peer_t *));
    job->connections.peer[at] = *peer;
    job->connections.n_peers++;
    mc_job_poll(job, t);
    return MESHCOLL_OK;
}

int mc_handle_link(meshcoll_t *h, int32_t rank, mc_peer_t **peer)
{
    return link_rank(h->job, mc_job_rank(h, rank), peer);
}

mc_transport_t *mc_handle_transport(const meshcoll_t *h, int32_t rank)
{
    const mc_job_t *const job = h->job;
    const int32_t own = mc_job_rank(h, h->rank), other = mc_job_rank(h, rank);
    return own == other ? NULL : job->connections.transport[mc_mesh_level(&job->mesh, own, other)];
}

int mc_handle_connect(meshcoll_t *h, int32_t rank, mc_peer_t **peer)
{
    int status = mc_handle_link(h, rank, peer);
    if (status || (*peer)->greeting || !(*peer)->transport->greets)
        return status;
    (*peer)->greeting = true;
    status = mc_greet(h, *peer);
    if (status) /* the peer waits for an answer that will not come */
        mc_failure_break(h, status);
    return status;
}
