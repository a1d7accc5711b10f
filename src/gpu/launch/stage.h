/*
 * Calls on device memory that no kernel does, as those with users' operations: they run on the
 * host, on memory of the host that the input is copied to and the result from. The caller holds the
 * mesh's lock.
 */
#ifndef MC_LAUNCH_STAGE_H
#define MC_LAUNCH_STAGE_H

#include "gpu/mesh/gpu.h"
#include "gpu/program/find_body.h"

/* Is there a kernel for such a call? */
static inline bool mc_gpu_has_kernel(const meshcoll_args_t *a)
{
    mc_user_op_t user;
    const bool premul = mc_user_op_find(a->op, &user) && user.is_premul;
    const mc_device_body_t body =
        premul ? mc_device_premul_body(a->datatype) : mc_device_body(a->datatype, a->op);
    return !mc_moves[a->collective].reduces || body != MC_DEVICE_BODY_move;
}

/* Takes memory of the host, and puts it into checked arguments in place of the GPU's, of which
 * `buffer` is one. Not collective. ERR_DEVICE, ERR_NO_MEMORY, ERR_INVALID_ARG. */
int mc_stage_take(meshcoll_t *h, const mc_pointer_t *buffer, meshcoll_args_t *args,
                  struct mc_stage **stage);
/* Gives it back to the mesh, for later calls. */
void mc_stage_return(meshcoll_t *h, struct mc_stage *stage);
void mc_stage_free(struct mc_stage *stage); /* NULL is allowed */
/* Frees what was given back. */
void mc_stages_close(meshcoll_t *h);

/* Copies the input, once the mesh's calls before this one are complete on the GPU. */
int mc_stage_in(meshcoll_t *h, const struct mc_stage *stage);
/* Copies the result. */
int mc_stage_out(const struct mc_stage *stage);

#endif
