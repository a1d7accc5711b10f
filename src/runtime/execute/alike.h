/* What a transport may do with a message beside letting its receiver fetch it: write it once for all whom it is sent alike,
 * or bring it to a receiver that has more to do than its sender, or as much. */
#ifndef MC_RUNTIME_ALIKE_H
#define MC_RUNTIME_ALIKE_H

#include "runtime/execute/executor.h"

/* Counts, for each send, those of the same chunks that follow it: before anything is written to them, and with no other
 * send between. And finds those that are pushed: to a root that sums, whose senders only wait for it; where ranks share
 * cores also others that are summed, and those of several to one. And those that are mutual: of phases in which all send.
 * And those that are unhelped: of a root that scatters to several where ranks share cores. */
void mc_alike_find(const mc_plan_t *plan, bool crowded, mc_task_t *task);

#endif
