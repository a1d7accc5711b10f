/* Creating a mesh, whatever its ranks were started by. */
#ifndef MC_CREATE_CREATE_H
#define MC_CREATE_CREATE_H

#include "runtime/handle/handle.h"

/* What creation starts from. `place` and `params` stay the caller's. */
typedef struct {
    meshcoll_oob_t oob; /* `context` is freed with `free_context` when the handle is */
    void (*free_context)(void *context);
    const mc_place_t *place; /* by rank of `oob` */
    const meshcoll_params_t *params;
    const char *tuned; /* the file that params->links were read from; NULL: they were not */
} mc_creation_t;

/* Collective. */
int mc_handle_create(const mc_creation_t *creation, meshcoll_t **mesh);
/* A handle without transports, from settings; rank `rank` of `mesh`. */
int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   meshcoll_t **handle);

#endif
