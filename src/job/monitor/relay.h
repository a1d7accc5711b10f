/* What a monitor hears on its connections, and what it passes on. In the monitor's thread. */
#ifndef MC_MONITOR_RELAY_H
#define MC_MONITOR_RELAY_H

#include "job/monitor/state.h"

/* Takes over a connection; 0 or an errno. */
int mc_relay_add(mc_monitor_t *m, int fd, int32_t rank, bool asks);
void mc_relay_remove(mc_monitor_t *m, mc_monitor_branch_t *branch);
/* Is a rank connected that does more than ask? */
bool mc_relay_has(const mc_monitor_t *m, int32_t rank);
/* Handles all that has arrived. */
void mc_relay_read(mc_monitor_t *m);
/* A rank has ended that was never connected. */
void mc_relay_miss(mc_monitor_t *m, int32_t rank);
/* Passes on what is on the board and was not passed on. */
void mc_relay_pass_on(mc_monitor_t *m);
/* Sends a frame without data to this rank's parent in the tree, or to all its children. */
void mc_relay_up(const mc_monitor_t *m, uint32_t kind);
void mc_relay_down(const mc_monitor_t *m, uint32_t kind);
/* The barrier is complete: lets this rank and all below it go on. */
void mc_relay_release(mc_monitor_t *m);
/* The tree is not complete: tells all that can be told. */
void mc_relay_tear(mc_monitor_t *m);
/* Tells all that this rank leaves. */
void mc_relay_leave(const mc_monitor_t *m);

#endif
