/* Closes and frees mesh handles. */
#ifndef MC_CREATE_CLOSE_H
#define MC_CREATE_CLOSE_H

#include "runtime/handle/handle.h"

/* Frees a handle on which nothing is in flight, of a creation that failed. */
void mc_handle_free(meshcoll_t *h);
/* Closes what the meshes of a job share, and frees all that are left of them. */
void mc_job_free(mc_job_t *job);
/* Frees those that were destroyed while something was in flight on them that is now complete. The caller
 * holds the lock. */
void mc_handles_sweep(mc_job_t *job);

#endif
