/* The jobs of this process: what the meshes of each share (handle/job.h). */
#ifndef MC_CREATE_JOBS_H
#define MC_CREATE_JOBS_H

#include "job/network/network.h"
#include "runtime/handle/handle.h"
#include "runtime/place/places.h"

/* In a child of fork all calls on meshes of a job that is listed here fail with a sentence: transports, descriptors and
 * locks are the parent's too, and must not be touched. */
void mc_jobs_enter(mc_job_t *job);
void mc_jobs_leave(const mc_job_t *job);
/* A mesh of the job is complete. The caller holds the lock, where others may use the job. */
void mc_job_add(meshcoll_t *h);

/* Opens rank `rank` of `mesh` with these settings, without transports, in a job; NULL: as the first mesh of
 * one of its own (open.c). */
int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   mc_job_t *job, meshcoll_t **handle);
/* Opens one of some ranks of a mesh, in its job: `member` has their numbers there, by rank. */
int mc_handle_open_part(const meshcoll_t *parent, const mc_mesh_t *mesh, int32_t rank,
                        const int32_t *member, const mc_settings_t *settings, meshcoll_t **handle);
/* Frees a handle on which nothing is in flight, of a creation that failed (close.c). */
void mc_handle_free(meshcoll_t *h);
/* Closes what the meshes of a job share, and frees all that are left of them. */
void mc_job_free(mc_job_t *job);
/* Frees those that were destroyed while something was in flight on them that is now complete. The caller
 * holds the lock. */
void mc_handles_sweep(mc_job_t *job);

/* Where a process runs, and how others reach it: it tells the same when a mesh joins its job. */
typedef struct mc_home {
    mc_location_t location;
    mc_network_t network;
} mc_home_t;
/* It is complete: gives it the id by which it can be joined, and takes over `home`. */
void mc_jobs_name(mc_job_t *job, const mc_job_id_t *id, mc_home_t *home);

/* Jobs of which this thread may make further meshes, without connections of their own: live ones that it has made; of
 * those with a lock, which any thread may use, all. By mesh rank of this process in the job; an id of zeros: none. */
enum { MC_JOBS_OFFERED = 4 };
typedef struct mc_job_offer {
    mc_job_id_t id;
    int32_t rank, unused;
} mc_job_offer_t;
/* True: there is one; *home is what it knows of this process. */
bool mc_jobs_offer(mc_job_offer_t offer[MC_JOBS_OFFERED], mc_home_t *home);
/* One of them, in which its last mesh is not destroyed until it is released; NULL: it is not there any more. */
mc_job_t *mc_jobs_hold(const mc_job_offer_t *offer);
void mc_jobs_release(mc_job_t *job);
/* A mesh is being destroyed, maybe the last one: none joins the job, and none is doing so. Reopened, where it was not
 * the last. */
void mc_jobs_close(mc_job_t *job);
void mc_jobs_reopen(mc_job_t *job);

/* ERR_PEER: a job of this process that has all ranks of the environment has lost one. Who waits for all of them to join
 * another mesh would wait in vain. */
int mc_jobs_check_ranks(void);

/* Of a handle that was destroyed with the mesh that it was made from, but not by the caller, keeps what it takes to
 * refuse calls on it with a sentence. Of the last ones only, as many as a job can have. */
void mc_handle_bury(meshcoll_t *h);
bool mc_handle_is_buried(const meshcoll_t *h);
/* When the caller destroys it, too. */
void mc_handle_unbury(meshcoll_t *h);

#endif
