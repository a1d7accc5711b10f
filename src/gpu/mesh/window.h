/*
 * Registered memory: a buffer of each rank's GPU that the other ranks on its machine have mapped.
 * Where OUT of a call lies in one, ranks know where the others' lies: at the same offset of theirs.
 */
#ifndef MC_GPU_WINDOW_H
#define MC_GPU_WINDOW_H

#include "gpu/mesh/gpu.h"

struct mc_gpu_window {
    struct meshcoll_registration is; /* first */
    mc_gpu_window_t *next;           /* of the mesh's */
    uint32_t number; /* of the operation that registered it, the same on all ranks */
    char *buffer;    /* this rank's */
    size_t bytes;    /* the same on all ranks */
    /* By mesh rank, as this process's GPU sees it; 0: not mapped. What was mapped is an allocation,
     * in which the buffer begins at `peer`. */
    mc_cu_address_t *mapped, *peer;
};

/* The registration that OUT of a checked call lies in as a whole; NULL: none, or the call takes no
 * advantage of it: tables of counts may differ between ranks; not all ranks need have an OUT; and
 * one that is a block lies elsewhere on each rank where it is in place. */
const mc_gpu_window_t *mc_gpu_window(const meshcoll_t *h, const meshcoll_args_t *args);

/* Closes what is mapped. The context is current. */
void mc_gpu_window_unmap(mc_gpu_window_t *window, int32_t ranks);
/* Frees it, and takes it out of the list, if it is there. */
void mc_gpu_window_free(mc_gpu_t *gpu, mc_gpu_window_t *window);

#endif
