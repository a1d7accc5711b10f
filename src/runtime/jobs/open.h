/* Opens handles, before there are transports. */
#ifndef MC_JOBS_OPEN_H
#define MC_JOBS_OPEN_H

#include "runtime/handle/handle.h"

/* Opens rank `rank` of `mesh` with these settings, without transports, in a job; NULL: as the first mesh of
 * one of its own. */
int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   mc_job_t *job, meshcoll_t **handle);
/* Opens one of some ranks of a mesh, in its job: `member` has their numbers there, by rank. */
int mc_handle_open_part(const meshcoll_t *parent, const mc_mesh_t *mesh, int32_t rank,
                        const int32_t *member, const mc_settings_t *settings, meshcoll_t **handle);

#endif
