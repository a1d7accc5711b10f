/* The transports of a handle, their addresses, and connections over them. */
#ifndef MC_RUNTIME_CONNECTIONS_H
#define MC_RUNTIME_CONNECTIONS_H

#include "runtime/handle.h"

/* The most that a dimension's transport would do by shm (h->access says what it may); NONE: there is no such. */
mc_shm_access_t mc_connections_want_shm(const meshcoll_t *h);
/* As h->tls says, along dimensions longer than 1. */
int mc_connections_open(meshcoll_t *h);

/* This rank's addresses by dimension, packed for others; a multiple of 8 bytes. */
size_t mc_addresses_bytes(const meshcoll_t *h);
void mc_addresses_pack(const meshcoll_t *h, char *at);
/* All ranks', through the handle's out-of-band allgather, unless a rank comes with an error. Collective. */
int mc_addresses_share(meshcoll_t *h, int status);

#endif
