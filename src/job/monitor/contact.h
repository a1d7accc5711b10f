/* How the monitors of processes reach each other: where each listens, and in which order its addresses
 * are tried. */
#ifndef MC_MONITOR_CONTACT_H
#define MC_MONITOR_CONTACT_H

#include "job/network/network.h"

enum { MC_CONTACT_HOST = 40 };

/* Of a rank; plain memory. */
typedef struct {
    mc_network_t network; /* no addresses: it cannot be reached */
    uint16_t port, unused;
    int32_t pid;
    char host[MC_CONTACT_HOST];
} mc_contact_t;

/* Listens at all addresses; `network` NULL: on the loopback interface only. Returns 0 or an errno. */
int mc_contact_open(const mc_network_t *network, int *listener, mc_contact_t *own);

/* Connects to a rank within these seconds: to its addresses, the likeliest first, and to the next ones while those
 * before them do not answer. Returns 0, or the errno of the last attempt; `accept` says whether a connection leads to
 * the right process, and returns such an errno. */
typedef int (*mc_contact_accept_t)(void *context, int fd);
int mc_contact_connect(const mc_contact_t *own, const mc_contact_t *to, double seconds,
                       mc_contact_accept_t accept, void *context, int *fd);

#endif
