/* Opens handles, before there are transports. */
#ifndef MC_JOBS_OPEN_H
#define MC_JOBS_OPEN_H

#include "runtime/handle/handle.h"

/* Opens rank `rank` of `mesh` with these settings, without transports, in a job; NULL: as the first mesh of
 * one of its own. */
int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   mc_job_t *job, meshcoll_t **handle);

#endif
