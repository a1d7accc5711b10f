/* What decides how a program runs, the same on all ranks: the tracks of its strategy (gpu/program/tracks.h), and whether
 * its messages have flags in their data (gpu/kernel/ll.h). */
#ifndef MC_LAUNCH_PRICE_H
#define MC_LAUNCH_PRICE_H

#include "compose/strategy/strategy.h"
#include "gpu/mesh/arena.h"
#include "gpu/program/tracks.h"
#include "mesh/link/link.h"

/* A track for each row of phases of a side along links of one kind, where segments or sides are to overlap; at
 * most as many as there are blocks, the last one of a side with all its further phases. */
mc_device_tracks_t mc_gpu_tracks(const mc_strategy_t *strategy, const mc_mesh_t *mesh,
                                 uint32_t blocks);

/* What all ranks of a call send, whose plans are added one by one, and the most chunks of one message. Of each track on
 * the average of all ranks: seconds beside the messages' bytes, and per byte of a chunk. Each message pays its link's
 * alpha and gap, as the track waits for it. */
typedef struct {
    uint64_t messages, chunks;
    uint32_t widest;
    double start[MC_DEVICE_TRACKS], byte[MC_DEVICE_TRACKS];
} mc_gpu_load_t;
void mc_gpu_load_add(mc_gpu_load_t *load, const mc_device_tracks_t *tracks, const mc_links_t *links,
                     const mc_plan_t *plan);

/* Are tracks faster than one of all blocks? In several, each has a part of the blocks, so that there are more
 * passes, and more messages; but the longest track hides the others. `chunk`: its bytes, on the average. */
bool mc_gpu_tracks_pay(const mc_device_tracks_t *tracks, const mc_gpu_load_t *load,
                       const mc_gpu_layout_t *layout, double chunk, uint32_t segments);

/* Seconds that a rank's messages take, on the average of all ranks, on the slowest of the links, with flags in their data
 * or without. Infinite where a message does not fit. */
double mc_gpu_protocol_seconds(const mc_gpu_load_t *load, const mc_gpu_layout_t *layout,
                               double chunk, double beta, bool ll);
/* Of the dimensions that have several ranks, the largest beta. */
double mc_gpu_slowest(const mc_links_t *links, const mc_mesh_t *mesh);

#endif
