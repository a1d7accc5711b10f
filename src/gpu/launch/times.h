/*
 * What MESHCOLL_EXPLAIN records of launches, and calls learn: whose they are, and their times, by an event before and one
 * after each. The caller holds the mesh's lock.
 */
#ifndef MC_LAUNCH_TIMES_H
#define MC_LAUNCH_TIMES_H

#include "gpu/launch/launch.h"

/* As many launches in flight are timed; further ones are counted. */
enum { MC_GPU_TIMED = 64 };

/* Of a launch, a member of the mesh's list. */
typedef struct mc_gpu_timed {
    struct mc_gpu_timed *next;
    mc_cu_event_t begin, end;
    struct mc_record *call;
    bool learns; /* calls with this key, of this candidate */
    mc_choice_key_t key;
    int32_t candidate;
} mc_gpu_timed_t;

/* The record of a call; NULL where the mesh records nothing, or too many. */
int mc_gpu_record(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                  const mc_gpu_program_t *program, struct mc_record **call);

/* Before a launch of a mesh that records, or of one that is timed; the context is current. The caller records `end`
 * behind it. NULL: the launch is not timed, but counted. */
mc_gpu_timed_t *mc_gpu_times_begin(const meshcoll_t *h, const mc_gpu_place_t *at);

/* Stores the times of launches that are complete. */
void mc_gpu_times_collect(const meshcoll_t *h);

/* `leaves`: not the driver's events. */
void mc_gpu_times_free(mc_gpu_t *gpu, bool leaves);

#endif
