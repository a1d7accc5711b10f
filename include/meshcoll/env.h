/** @file
 * A mesh of all processes of a job, found from their environment, without MPI.
 */
#ifndef MESHCOLL_ENV_H
#define MESHCOLL_ENV_H

#include <meshcoll/meshcoll.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates a mesh of all processes of a job. Rank and number of ranks are those of the innermost
 * launcher: RANK and WORLD_SIZE (torchrun, `meshcoll run`), OMPI_COMM_WORLD_RANK and _SIZE (Open
 * MPI), PMI_RANK and PMI_SIZE, in a step of srun SLURM_PROCID and SLURM_NTASKS, or those of Horovod,
 * MVAPICH2, jsrun and Flux; without any the mesh has one rank. One of two variables without the
 * other is an error, and so is a rank of which no number of ranks is known (PMIX_RANK, PMI_ID,
 * PALS_RANKID, ALPS_APP_PE). So are launchers that disagree, unless MESHCOLL_LAUNCHER names one:
 * torchrun, horovod, openmpi, mvapich, jsrun, flux, pmi or slurm.
 * The ranks meet over TCP at MESHCOLL_MASTER_ADDR and MESHCOLL_MASTER_PORT, else at MASTER_ADDR and
 * a port derived from MASTER_PORT (or of the range MESHCOLL_PORTS), and prove that they know
 * MESHCOLL_SECRET or the content of MESHCOLL_SECRET_FILE, if set. docs/launch.md describes the variables,
 * defaults and ports.
 *
 * `params` may be NULL. *mesh is the caller's to destroy with meshcoll_destroy. Collective over all
 * processes of the job, which make their calls in the same order. Errors: those of
 * meshcoll_create_oob; ERR_INVALID_ARG for a variable that is missing or wrong; ERR_TRANSPORT where
 * this rank was refused, or ranks are missing after MESHCOLL_BOOTSTRAP_TIMEOUT seconds (600): the
 * message names them, on all ranks that joined; ERR_PEER at once where a mesh that this process has of
 * all ranks has lost one.
 */
MESHCOLL_API int meshcoll_create_env(const meshcoll_params_t *params, meshcoll_t **mesh);

/** This process's rank and the number of ranks, as meshcoll_create_env would find them; not
 * collective. Either pointer may be NULL. ERR_INVALID_ARG for a variable that is wrong. */
MESHCOLL_API int meshcoll_env(int *rank, int *size);

#ifdef __cplusplus
}
#endif

#endif
