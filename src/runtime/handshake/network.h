/* The addresses of a process's network namespace, as ranks tell them to each other. */
#ifndef MC_HANDSHAKE_NETWORK_H
#define MC_HANDSHAKE_NETWORK_H

#include "runtime/handshake/wire.h"

enum { MC_NETWORK_ADDRESSES = 8 };

/* Of a rank; plain memory. */
typedef struct {
    uint64_t space;   /* the namespace: equal where processes have one loopback */
    uint32_t n;       /* addresses, without those of the loopback */
    uint32_t reached; /* 1: at at[0] it reached, or was reached by, another rank */
    mc_endpoint_t at[MC_NETWORK_ADDRESSES]; /* the likeliest first, bridges last; ports 0 */
} mc_network_t;

/* `reached`: this end of a connection to another rank; NULL: not known. Never fails: there may be no addresses. */
void mc_network_find(uint64_t space, const mc_endpoint_t *reached, mc_network_t *network);

/* Are two addresses the same, whatever their ports? */
bool mc_network_is_same(const mc_endpoint_t *a, const mc_endpoint_t *b);

#endif
