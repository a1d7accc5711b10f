/*
 * What MESHCOLL_EXPLAIN records of launches: whose they are, and their times, by an event before
 * and one after each. The caller holds the mesh's lock.
 */
#ifndef MC_LAUNCH_TIMES_H
#define MC_LAUNCH_TIMES_H

#include "gpu/launch/programs.h"

/* As many launches in flight are timed; further ones are counted. */
enum { MC_GPU_TIMED = 64 };

typedef struct {
    mc_cu_event_t begin, end; /* NULL: not made yet */
    struct mc_record *call;
} mc_gpu_timed_t;

typedef struct mc_gpu_times {
    mc_gpu_timed_t launch[MC_GPU_TIMED];
    uint32_t first, n; /* those in flight, in turn */
} mc_gpu_times_t;

/* The record of a call; NULL where the mesh records nothing, or too many. */
int mc_gpu_record(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                  const mc_gpu_program_t *program, struct mc_record **call);

/* Before and after a launch of a mesh that records; the context is current. begin returns NULL where
 * the launch is not timed, and counts it. */
mc_gpu_timed_t *mc_gpu_times_begin(const meshcoll_t *h, struct mc_record *call,
                                   mc_cu_stream_t stream);
void mc_gpu_times_end(const meshcoll_t *h, mc_gpu_timed_t *timed, mc_cu_stream_t stream);

/* Stores the times of launches that are complete. */
void mc_gpu_times_collect(const meshcoll_t *h);

/* `leaves`: not the driver's events. */
void mc_gpu_times_free(mc_gpu_t *gpu, bool leaves);

#endif
