/* The transports of a handle, their addresses, and connections over them. */
#ifndef MC_RUNTIME_CONNECTIONS_H
#define MC_RUNTIME_CONNECTIONS_H

#include "runtime/handle/handle.h"

/* The most that a dimension's transport would do by shm (h->access says what it may); NONE: there is no such. */
mc_shm_access_t mc_connections_want_shm(const meshcoll_t *h);
/* As h->tls says, along dimensions longer than 1. */
int mc_connections_open(meshcoll_t *h);

/* This rank's addresses by dimension, packed for others; a multiple of 8 bytes. */
size_t mc_addresses_bytes(const meshcoll_t *h);
void mc_addresses_pack(const meshcoll_t *h, char *at);
/* All ranks', through the handle's out-of-band allgather, unless a rank comes with an error. Collective. */
int mc_addresses_share(meshcoll_t *h, int status);

/* The connection to a rank, made when first asked for. */
int mc_handle_connect(meshcoll_t *h, int32_t rank, mc_peer_t **peer);
/* The innermost dimension whose transport streams (transport.h), on all ranks; -1: none does. */
int32_t mc_handle_wire(const meshcoll_t *h);
/* Bytes that the ranks of a box may have on the way through it together; 0: there is none. */
size_t mc_handle_window(const meshcoll_t *h);
/* How it runs what is planned. */
mc_stream_t mc_handle_stream(const meshcoll_t *h);

#endif
