/*
 * The ranks that are left of a failed mesh. They join the lowest of them, which waits until every rank has joined or does
 * not answer any more, and then tells each its number. Its connections to them carry an out-of-band allgather, with
 * which a new mesh is created.
 */
#ifndef MC_MONITOR_SURVIVORS_H
#define MC_MONITOR_SURVIVORS_H

#include "job/monitor/monitor.h"

typedef struct mc_survivors mc_survivors_t;

/* Waits for the other survivors of the ranks that are `member`, for `seconds` at most: who lives and does not come
 * in time is left out. ERR_TRANSPORT, ERR_UNSUPPORTED where there are no monitors, ERR_NO_MEMORY. */
int mc_survivors_gather(mc_monitor_t *monitor, const bool *member, double seconds,
                        mc_survivors_t **survivors);
/* Their allgather; the survivors are its context. */
meshcoll_oob_t mc_survivors_oob(mc_survivors_t *survivors);
/* Takes a void *, as it frees the context of a mesh. */
void mc_survivors_free(void *survivors);

#endif
