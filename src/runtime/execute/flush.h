/* The end of a run: whatever its transports have accepted goes out before the run counts as
 * complete, as the caller may compute without progress afterwards. */
#ifndef MC_RUNTIME_FLUSH_H
#define MC_RUNTIME_FLUSH_H

#include "runtime/execute/executor.h"

/* Starts to flush the ports; x->n_left is the number of flushes in flight. */
void mc_flush_start(mc_executor_t *x);
/* Polls them. */
void mc_flush_poll(mc_executor_t *x);
/* Of a failed run: drops them. */
void mc_flush_drop(mc_executor_t *x);

#endif
