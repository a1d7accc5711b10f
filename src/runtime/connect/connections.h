/* The transports of a job, their addresses, and the connections over them, which its meshes share. */
#ifndef MC_RUNTIME_CONNECTIONS_H
#define MC_RUNTIME_CONNECTIONS_H

#include "runtime/handle/handle.h"

/* Returns the most access by shared memory that any dimension asks for; NONE: no dimension uses
 * shm. (job->connections.access is what processes may do.) */
mc_shm_access_t mc_connections_want_shm(const mc_job_t *job);
/* Opens a transport per dimension longer than 1, as job->connections.tls says. On failure the caller closes those
 * that were opened. */
int mc_connections_open(mc_job_t *job);
/* Opens a second transport of a dimension whose ranks are on several machines, with endpoints of its own, for a
 * thread of the library's. */
int mc_connections_twin(const mc_job_t *job, int32_t dim, mc_transport_t **transport);

/* Addresses of transports by dimension, packed: each preceded by its length, in multiples of 8 bytes. */
size_t mc_transports_bytes(mc_transport_t *const *transport, int32_t n);
void mc_transports_pack(mc_transport_t *const *transport, int32_t n, char *at);
/* The address of dimension `dim` in a rank's packed ones of `bytes` bytes; NULL: there is none. */
/* "10.0.0.2, eth0": where a rank of the job is reached, as it has told; "": in memory, or it is not known. */
void mc_rank_where(const mc_job_t *job, int32_t rank, char where[MC_TRANSPORT_WHERE]);
const void *mc_transports_find(const char *packed, size_t bytes, int32_t dim);

/* Packs this rank's addresses by dimension for others. */
void mc_addresses_pack(const mc_job_t *job, char *at);
/* The most bytes of a rank's packed addresses, and the check of what ranks tell: ERR_TRANSPORT. */
enum { MC_ADDRESSES_MOST = 1 << 20 };
int mc_addresses_check_bytes(uint64_t bytes);
/* Do the gathered addresses of all ranks have the lengths that they state, each within its rank's part, and an address
 * wherever a transport will connect? ERR_TRANSPORT, on all ranks alike. */
int mc_addresses_check(const mc_job_t *job);
/* Takes what a later connect to the rank needs of its process; `packed`: its addresses, of `bytes`. */
void mc_addresses_hold(const mc_job_t *job, int32_t rank, const char *packed, size_t bytes);
/* What a rank tells of its addresses before it sends them: their size, and the dimensions whose
 * transports stream, one bit each. */
typedef struct {
    uint64_t bytes, streams;
} mc_addresses_summary_t;
mc_addresses_summary_t mc_addresses_summary(const mc_job_t *job);
/* Both ends of a connection must agree: a dimension streams only where it does so on all ranks. */
void mc_addresses_agree(mc_job_t *job, const mc_addresses_summary_t *all);

/* Which messages transports copy rather than have read, as the links of the mesh say. */
void mc_connections_limit(const meshcoll_t *h);

/* Returns the connection to a rank; the first time it makes it and begins to greet it (greet.h),
 * without waiting for the peer. It belongs to the job. */
int mc_handle_connect(meshcoll_t *h, int32_t rank, mc_peer_t **peer);
/* The same without greeting it: for messages that are greetings themselves. */
int mc_handle_link(meshcoll_t *h, int32_t rank, mc_peer_t **peer);
/* Returns the transport to a rank; NULL: it is this rank. */
mc_transport_t *mc_handle_transport(const meshcoll_t *h, int32_t rank);
/* Polls a transport of a job from now on; those with connections are polled anyway. */
void mc_job_poll(mc_job_t *job, mc_transport_t *t);
/* Returns the innermost dimension whose transport streams (transport.h) on all ranks; -1: none
 * does. */
int32_t mc_handle_wire(const meshcoll_t *h);
/* Returns the limits by which runs of the handle are paced. */
mc_pacing_t mc_handle_pacing(const meshcoll_t *h);

#endif
