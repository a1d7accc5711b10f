/*
 * What access the ranks of one machine have to each other's memory: each tries all others. Each
 * publishes a small segment; others open it, and later read the memory of its process.
 */
#ifndef MC_TRANSPORT_SHM_PROBE_H
#define MC_TRANSPORT_SHM_PROBE_H

#include "transport/shm/shm_memory.h"

/* What each rank publishes, plain memory: a segment, and System V memory with a cookie. */
typedef struct {
    mc_shm_address_t address; /* without a process: none could be made */
    uint64_t cookie;
    pid_t pid;
    int32_t key; /* of System V memory; -1: none could be made */
} mc_shm_published_t;

typedef struct {
    mc_shm_mapping_t mapping;
    uint64_t *keyed; /* the System V memory; NULL: none */
    mc_shm_published_t published;
} mc_shm_probe_t;

void mc_shm_probe_open(mc_shm_probe_t *probe);
void mc_shm_probe_close(const mc_shm_probe_t *probe);

/* The ranks that take part, by rank as gathered; what they published is `stride` bytes apart. */
typedef struct {
    const int32_t *machine; /* as in boxes.h */
    int32_t n, rank;
    const void *published;
    size_t stride;
} mc_shm_ranks_t;

/* The least access of this rank to the ranks of its machine, itself included, COPY at most. */
mc_shm_access_t mc_shm_probe_copies(const mc_shm_ranks_t *ranks);
/* READ if this rank may read the memory of all ranks of its machine, else COPY. They must have
 * allowed it, with a transport of access READ. */
mc_shm_access_t mc_shm_probe_reads(const mc_shm_ranks_t *ranks);

#endif
