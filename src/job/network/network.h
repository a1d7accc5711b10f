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
    /* By address, of its subnet; 0: in which nobody else is sought, as it joins two ports, is link-local, a bridge's, or of
     * the first one's interface. */
    unsigned char bits[MC_NETWORK_ADDRESSES];
} mc_network_t;

typedef struct {
    mc_endpoint_t at;
    uint32_t bits;
} mc_subnet_t;

/* `reached`: this end of a connection to another rank; NULL: not known. Never fails: there may be no addresses. */
void mc_network_find(uint64_t space, const mc_endpoint_t *reached, mc_network_t *network);

/* Are two addresses the same, whatever their ports? */
bool mc_network_is_same(const mc_endpoint_t *a, const mc_endpoint_t *b);

/* Of all ranks, `stride` bytes apart. */
typedef struct {
    const void *first;
    size_t stride;
    int32_t n;
} mc_networks_t;

static inline const mc_network_t *mc_network_of(const mc_networks_t *networks, int32_t rank)
{
    return (const mc_network_t *)((const char *)networks->first + (size_t)rank * networks->stride);
}

/* Subnets in which every namespace has an address of its own, besides those of the interfaces by which ranks meet: found
 * by numbers, so that they may be several networks. Returns how many; the same on all ranks. */
int32_t mc_network_common(const mc_networks_t *networks, mc_subnet_t found[MC_NETWORK_ADDRESSES]);
/* The address in a subnet; NULL: there is none. */
const mc_endpoint_t *mc_network_in(const mc_network_t *network, const mc_subnet_t *subnet);

/* The interfaces by which this rank reaches ranks of other namespaces, as "eth0,eth1": those that route to the
 * address at which each was reached, or else to its likeliest; and those with an address in one of `n` subnets.
 * "": there are no others, or no interface was found. */
void mc_network_devices(const mc_networks_t *networks, int32_t rank, const mc_subnet_t *subnet,
                        int32_t n, char devices[MC_NETWORK_DEVICES]);

/* Adds "10.0.0.1, eth0": the likeliest address at which others reach this process, and its interface. */
void mc_network_where(const mc_network_t *own, mc_text_t *text);

/* Adds the subnets of an interface in which others may have an address, each once, in the order of their texts, behind a
 * blank: " 10.77.0.0/16". Temporary addresses of IPv6 come and go, and move others in the system's list. */
void mc_network_subnets(const char *device, mc_text_t *text);

#endif
