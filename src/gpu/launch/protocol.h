/*
 * Whether the messages of a call have flags in their data (gpu/kernel/ll.h): where that is priced lower.
 * All ranks find the same, from the plans of all of them and from what they have agreed on.
 */
#ifndef MC_LAUNCH_PROTOCOL_H
#define MC_LAUNCH_PROTOCOL_H

#include "gpu/mesh/arena.h"
#include "mesh/link/link.h"
#include "plan/plan.h"

/* What all ranks of a call send, and the most chunks of one message. */
typedef struct {
    uint64_t messages, chunks;
    uint32_t widest;
} mc_gpu_volume_t;

void mc_gpu_volume_add(mc_gpu_volume_t *volume, const mc_plan_t *plan);

/* Seconds that a rank's messages take, on the average of all ranks; `chunk`: bytes of a chunk, on the average,
 * `beta`: seconds of a byte on the slowest links. Infinite where a message does not fit. */
double mc_gpu_protocol_seconds(const mc_gpu_volume_t *volume, const mc_gpu_layout_t *layout,
                               double chunk, double beta, bool ll);

/* Of the dimensions that have several ranks, the largest beta. */
double mc_gpu_slowest(const mc_links_t *links, const mc_mesh_t *mesh);

#endif
