/* Which phases of a strategy are tracks of a program (device/tracks.h). */
#ifndef MC_LAUNCH_TRACKS_H
#define MC_LAUNCH_TRACKS_H

#include "compose/strategy/strategy.h"
#include "device/tracks.h"

/* A track for each row of phases of a side along links of one kind, where segments or sides are to overlap; at
 * most as many as there are blocks, the last one of a side with all its further phases. The same on all ranks. */
mc_device_tracks_t mc_gpu_tracks(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                 uint32_t blocks);

#endif
