/* How a monitor connects to others, and lets them in. */
#ifndef MC_MONITOR_REACH_H
#define MC_MONITOR_REACH_H

#include "job/monitor/state.h"

/* Connects to a rank's monitor, each attempt within these seconds. Any thread. Returns 0 or an errno. */
int mc_reach_connect(const mc_monitor_t *m, int32_t rank, mc_hello_kind_t kind, double seconds,
                     int *fd);
/* The most connections that a monitor has in the tree of so many ranks. */
int mc_reach_most(int32_t size);
/* Finds its place in the tree, before the thread begins. */
void mc_reach_place(mc_monitor_t *m);
/* The others in the monitor's thread. Until when it may sleep. */
double mc_reach_until(const mc_monitor_t *m);
/* Has the mesh failed before all children came to be told? They come within moments of the creation. */
bool mc_reach_is_missed(mc_monitor_t *m);
/* Looks whether all children have come in time, and moves the barrier on. */
void mc_reach_check(mc_monitor_t *m);
/* Connects to this rank's parent in the tree, if it has one; says on stderr
 * where it cannot. */
void mc_reach_parent(mc_monitor_t *m);
/* Another process of the mesh has come: a child in the tree, or one that asks. */
void mc_reach_admit(mc_monitor_t *m, const mc_visitor_t *visitor);

#endif
