/*
 * Messages between the ranks of one machine. Small ones travel in slots of shared memory, in the
 * same cache lines as their flag; longer ones piece by piece through the pages of several slots.
 * The receiver reads large ones from the sender's memory (process_vm_readv), and the sender may
 * help (shm_link.h); where the kernel does not permit that, they travel in pieces too. A message
 * to several ranks goes through a board (shm_link.h). A receive that reduces works on the message
 * piece by piece, in the slot, page, board or read buffer.
 */
#ifndef MC_TRANSPORT_SHM_H
#define MC_TRANSPORT_SHM_H

#include "transport/transport.h"

/* Access that the ranks of a machine have to each other's memory, in ascending order. */
typedef enum {
    MC_SHM_NONE, /* no shared memory */
    MC_SHM_KEYS, /* by System V key, as UCX's sysv transport does, but not through /proc */
    MC_SHM_COPY, /* shared memory, but not other processes' private memory */
    MC_SHM_READ
} mc_shm_access_t;

typedef struct {
    const char *dim;        /* the dimension's name, for error texts */
    int32_t base, n;        /* ranks [base, base + n) are on this machine */
    int32_t rank;           /* this rank */
    mc_shm_access_t access; /* COPY or READ, the same on all ranks */
    bool oversubscribed;    /* oversubscribed: ranks share cores */
} mc_shm_params_t;

int mc_shm_create(const mc_shm_params_t *params, mc_transport_t **transport);

/* Of a transport with access READ, before it connects: ranks may not read each other after all. */
void mc_shm_lower(mc_transport_t *transport);

#endif
