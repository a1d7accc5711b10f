/*
 * Messages between the ranks of one machine: small ones in slots of shared memory, beside their flags, longer ones piece by
 * piece in the pages of several; large ones read by the receiver straight from the sender's memory (process_vm_readv),
 * which may help (shm_share.h), or where that is not allowed, in such pieces. What several receive alike is read from a board
 * (shm_board.h). What is to be reduced is reduced from there, a piece at a time.
 */
#ifndef MC_TRANSPORT_SHM_H
#define MC_TRANSPORT_SHM_H

#include "transport/transport.h"

/* What the ranks of a machine may do with each other's memory. */
typedef enum {
    MC_SHM_NONE, /* not even share some */
    MC_SHM_KEYS, /* share what UCX finds by a key (System V), not through /proc */
    MC_SHM_COPY, /* share memory, but not read what is not shared */
    MC_SHM_READ
} mc_shm_access_t;

typedef struct {
    const char *dim;        /* the dimension's name, for error messages */
    int32_t base, n;        /* ranks [base, base + n) are on this machine */
    int32_t rank;           /* this one */
    mc_shm_access_t access; /* COPY or READ, alike on all */
    bool crowded;           /* ranks share cores */
    size_t
        pieces; /* bytes up to which messages go in pieces that their senders could help with; 0: not known */
} mc_shm_params_t;

int mc_shm_create(const mc_shm_params_t *params, mc_transport_t **transport);

/* What each rank may do with every other on its machine (boxes.h), the least of it on all machines, and at most what is
 * wanted. Collective: the same on all ranks. */
int mc_shm_probe(const meshcoll_oob_t *oob, const int32_t *machine, mc_shm_access_t wanted,
                 mc_shm_access_t *access);

#endif
