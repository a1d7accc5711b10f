/* Creates a mesh, for every way its ranks can be started. */
#ifndef MC_CREATE_CREATE_H
#define MC_CREATE_CREATE_H

#include "job/network/wire.h"
#include "runtime/handle/handle.h"

/* Input of the creation. The caller keeps `place` and `params`. */
typedef struct {
    /* On success `context` is freed with `free_context` when it is not needed any more: at once where the mesh has
     * joined a job, so that it has a job_rank. */
    meshcoll_oob_t oob;
    void (*free_context)(void *context);
    const mc_endpoint_t *reached; /* this end of a connection to another rank; NULL: not known */
    const mc_place_t *place;      /* by rank of `oob`; NULL: as they are found */
    const meshcoll_params_t *params;
    bool of_environment; /* its ranks are all that the launcher has started */
    bool finds_mesh;     /* whatever the environment says */
    bool tuned;          /* rank 0 looks for tuned links if none are given */
} mc_creation_t;

/* Collective. */
int mc_handle_create(const mc_creation_t *creation, meshcoll_t **mesh);

#endif
