/* The jobs of this process: what the meshes of each share (handle/shared.h). */
#ifndef MC_CREATE_JOBS_H
#define MC_CREATE_JOBS_H

#include "runtime/handle/handle.h"

/* In a child of fork all calls on meshes of a job that is listed here fail with a sentence: transports, descriptors and
 * locks are the parent's too, and must not be touched. */
void mc_jobs_enter(mc_shared_t *job);
void mc_jobs_leave(const mc_shared_t *job);

/* Of a handle that was destroyed with the mesh that it was made from, but not by the caller, keeps what it takes to
 * refuse calls on it with a sentence. Of the last ones only, as many as a job can have. */
void mc_handle_bury(meshcoll_t *h);
bool mc_handle_is_buried(const meshcoll_t *h);
/* When the caller destroys it, too. */
void mc_handle_unbury(meshcoll_t *h);

#endif
