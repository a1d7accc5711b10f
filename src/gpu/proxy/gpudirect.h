/*
 * May slots of messages to other machines lie in memory of the GPU, where UCX and the network card
 * read and write them? Only where the user says so, and where it is sure that a kernel that runs
 * sees what has arrived: the GPU orders such writes, or the driver has a call that waits for them.
 * Each rank's own choice: its peers need not make the same.
 */
#ifndef MC_PROXY_GPUDIRECT_H
#define MC_PROXY_GPUDIRECT_H

#include "gpu/cuda/driver.h"

typedef struct {
    mc_cu_context_t context; /* of the memory; NULL: it may not */
    int (*flush)(void);      /* before a kernel is told of what has arrived; NULL: needs nothing */
    const char *why_not;     /* "…, as WHY_NOT"; static; NULL: it may */
} mc_gpudirect_t;

/* As MESHCOLL_GPU_DIRECT says, for the GPU whose context is current. ERR_PARSE, ERR_DEVICE. */
int mc_gpudirect_find(mc_gpudirect_t *direct);

#endif
