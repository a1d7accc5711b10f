/* The end of a run: whatever its transports have accepted goes out before the run counts as
 * complete, as the caller may compute without progress afterwards. */
#ifndef MC_RUNTIME_FLUSH_H
#define MC_RUNTIME_FLUSH_H

#include "runtime/execute/executor.h"

/* A flush waits for everything sent through its transport, including messages of other requests
 * to receivers that are not there yet; if those wait for this request, waiting for the flush
 * would deadlock. So while others run, a flush is given up after so many polls without an event:
 * those of a waiting rank before it sleeps, and a few sleeps, in which the wire drains. */
enum { MC_FLUSH_SLEEPS = 4 };

/* Starts to flush the ports of an executor that flushes; adds the flushes in flight to n_left, which is 0. */
void mc_flush_start(mc_executor_t *x);
/* Polls them. */
void mc_flush_poll(mc_executor_t *x);
/* Of a failed run: drops them. */
void mc_flush_drop(mc_executor_t *x);

#endif
