/* Sends of the same bytes to several ranks, which a transport may write once for all of them. */
#ifndef MC_RUNTIME_ALIKE_H
#define MC_RUNTIME_ALIKE_H

#include "runtime/executor.h"

/* Counts, for each send, those of the same chunks that follow it: before anything is written to them, and with no other
 * send between. */
void mc_alike_find(const mc_plan_t *plan, mc_task_t *task);

#endif
