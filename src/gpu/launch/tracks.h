/* Which phases of a strategy are tracks of a program (gpu/program/tracks.h). */
#ifndef MC_LAUNCH_TRACKS_H
#define MC_LAUNCH_TRACKS_H

#include "compose/strategy/strategy.h"
#include "gpu/mesh/arena.h"
#include "gpu/program/tracks.h"
#include "mesh/link/link.h"

/* A track for each row of phases of a side along links of one kind, where segments or sides are to overlap; at
 * most as many as there are blocks, the last one of a side with all its further phases. The same on all ranks. */
mc_device_tracks_t mc_gpu_tracks(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                 uint32_t blocks);

/* What the messages of each track take on the average of all ranks, whose plans are added one by one: seconds
 * beside their bytes, and per byte of a chunk. Each message pays its link's alpha and gap, as the track waits for
 * it. */
typedef struct {
    uint32_t widest;
    double start[MC_DEVICE_TRACKS], byte[MC_DEVICE_TRACKS];
} mc_gpu_load_t;
void mc_gpu_load_add(mc_gpu_load_t *load, const mc_device_tracks_t *tracks, const mc_links_t *links,
                     const mc_plan_t *plan);

/* Are tracks faster than one of all blocks? In several, each has a part of the blocks, so that there are more
 * passes, and more messages; but the longest track hides the others. `chunk`: its bytes, on the average. */
bool mc_gpu_tracks_pay(const mc_device_tracks_t *tracks, const mc_gpu_load_t *load,
                       const mc_gpu_layout_t *layout, double chunk, uint32_t segments);

#endif
