/* Time steps of a world for plans whose messages cannot all be taken in program order. */
#ifndef MC_TOOLS_TIMES_H
#define MC_TOOLS_TIMES_H

#include "plan/world.h"

/*
 * mc_world_times where it finds an order. Some plans have none when a rank must send, and receive,
 * strictly in program order, as the full-mesh allreduce, which sums in rank order: they run all the
 * same, since only messages of one pair follow each other. Then each time step takes what is ready,
 * first come in program order first, one message out and one in a rank.
 */
int mc_tool_times(const mc_world_t *world, mc_times_t *times);

#endif
