/* How the monitors of processes reach each other: where each listens, and in which order its addresses
 * are tried. */
#ifndef MC_MONITOR_CONTACT_H
#define MC_MONITOR_CONTACT_H

#include "runtime/handshake/wire.h"

enum { MC_CONTACT_ENDPOINTS = 4, MC_CONTACT_HOST = 40 };

/* Of a rank; plain memory. */
typedef struct {
    mc_endpoint_t at[MC_CONTACT_ENDPOINTS];
    uint32_t n; /* 0: it cannot be reached */
    int32_t pid;
    char host[MC_CONTACT_HOST];
} mc_contact_t;

/* Listens, on the loopback interface only where `local`. Returns 0 or an errno. */
int mc_contact_open(bool local, int *listener, mc_contact_t *own);

/* Connects to a rank, of this machine or another one, trying its addresses, the likeliest first:
 * `seconds` for each. Returns 0, or the errno of the last attempt; `accept` says whether a connection
 * leads to the right process, and returns such an errno. */
typedef int (*mc_contact_accept_t)(void *context, int fd);
int mc_contact_connect(const mc_contact_t *own, const mc_contact_t *to, bool same_machine,
                       double seconds, mc_contact_accept_t accept, void *context, int *fd);

#endif
