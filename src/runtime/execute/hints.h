/* Properties of sends that let a transport move a message other than by the receiver's pull: a
 * multicast that is written once for all receivers, or a push to a receiver that has at least as
 * much to do as the sender. */
#ifndef MC_RUNTIME_HINTS_H
#define MC_RUNTIME_HINTS_H

#include "runtime/execute/executor.h"

/* Sets `message` of each send (mc_message_t). `more`: sends of the same chunks that follow,
 * before anything is written to them and with no other send between. `pushed`: to a root that
 * reduces, whose senders only wait; where ranks share cores also in reduce-scatters, in
 * allreduces and to a root that gathers from several. `mutual`: in phases in which all ranks
 * send. */
void mc_hints_find(const mc_plan_t *plan, bool oversubscribed, mc_task_t *task);

#endif
