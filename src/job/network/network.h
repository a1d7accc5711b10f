/* The addresses of a process's network namespace, as ranks tell them to each other, and the interfaces by which this
 * one reaches the others. */
#ifndef MC_HANDSHAKE_NETWORK_H
#define MC_HANDSHAKE_NETWORK_H

#include "job/network/wire.h"

enum { MC_NETWORK_ADDRESSES = 8, MC_NETWORK_DEVICES = 112 };

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

/* The interfaces by which this rank reaches ranks of other namespaces, as "eth0,eth1": those that route to the
 * address at which each was reached, or else to its likeliest; and those, bridges apart, in whose subnet every
 * other namespace has an address of its own. "": there are no others, or no interface was found. `networks`: by
 * rank, `stride` bytes apart. */
void mc_network_devices(const void *networks, size_t stride, int32_t n, int32_t rank,
                        char devices[MC_NETWORK_DEVICES]);

/* Adds the subnets of an interface in which others may have an address, each once, in the order of their texts, behind a
 * blank: " 10.77.0.0/16". Temporary addresses of IPv6 come and go, and move others in the system's list. */
void mc_network_subnets(const char *device, mc_text_t *text);

#endif
