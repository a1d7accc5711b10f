/* Calls on device memory, blocking, persistent, or in a stream of the caller's. The caller holds the mesh's lock. */
#ifndef MC_GPU_CALL_H
#define MC_GPU_CALL_H

#include "gpu/mesh/gpu.h"
#include "runtime/call/call.h"

/* Kernels ------------------------------------------------------------------------------------------- */

int mc_gpu_call_run(meshcoll_t *h, mc_call_t *call);
bool mc_gpu_can_try(meshcoll_t *h, const mc_call_t *call);
/* A persistent request, without a plan for the host. */
int mc_gpu_request(meshcoll_t *h, mc_call_t *call, meshcoll_request_t **request);
int mc_gpu_enqueue(meshcoll_t *h, const meshcoll_args_t *given, void *stream);
int mc_gpu_enqueue_request(meshcoll_request_t *request, void *stream);

/* Staged calls ----------------------------------------------------------------------------------------
 * What no kernel does, as calls with users' operations, runs on the host, on memory of the host that the input is
 * copied to and the result from. */

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
int mc_staged_run(meshcoll_t *h, mc_call_t *call);
int mc_staged_init(meshcoll_t *h, mc_call_t *call, meshcoll_request_t **request);
/* For a call in a stream: ERR_UNSUPPORTED with a sentence. */
int mc_staged_refuse(const meshcoll_args_t *args);

/* Frees the memory that is kept for later calls. */
void mc_stages_free(mc_gpu_job_t *job);

/* Registered memory ---------------------------------------------------------------------------------- */

/* Collective. All ranks succeed, or all fail with the sentence of the first that failed. `registration` may be
 * NULL, which is an error that all are told. */
int mc_gpu_register(meshcoll_t *h, void *buffer, size_t bytes,
                    struct meshcoll_registration **registration);
/* Collective. Waits until this rank's launches are complete, and then for all ranks. Where it fails, the
 * registration stays. */
int mc_gpu_deregister(struct meshcoll_registration *registration);

#endif
