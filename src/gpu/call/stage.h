/*
 * Calls on device memory that no kernel does, as those with users' operations: they run on the
 * host, on memory of the host that the input is copied to and the result from. The caller holds the
 * mesh's lock.
 */
#ifndef MC_GPU_STAGE_H
#define MC_GPU_STAGE_H

#include "gpu/mesh/gpu.h"
#include "gpu/program/find_body.h"
#include "runtime/call/start.h"

/* Is there a kernel for such a call? */
static inline bool mc_gpu_has_kernel(const meshcoll_args_t *a)
{
    mc_user_op_t user;
    const bool premul = mc_user_op_find(a->op, &user) && user.is_premul;
    const mc_device_body_t body =
        premul ? mc_device_premul_body(a->datatype) : mc_device_body(a->datatype, a->op);
    return !mc_moves[a->collective].reduces || body != MC_DEVICE_BODY_move;
}

/* Runs a checked call to its end; or makes a persistent request for it. */
int mc_staged_run(meshcoll_t *h, const mc_asked_t *asked, const mc_pointer_t *buffer);
int mc_staged_init(meshcoll_t *h, const mc_asked_t *asked, const mc_pointer_t *buffer,
                   meshcoll_request_t **request);
/* For a call in a stream: ERR_UNSUPPORTED with a sentence. */
int mc_staged_refuse(const meshcoll_args_t *args);

/* Frees the memory that is kept for later calls. */
void mc_stages_free(mc_gpu_job_t *job);

#endif
