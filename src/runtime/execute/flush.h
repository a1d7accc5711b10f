/* The end of a run: what its transports have taken goes out before the run counts as complete, as its caller may go and do
 * something else then. */
#ifndef MC_RUNTIME_FLUSH_H
#define MC_RUNTIME_FLUSH_H

#include "runtime/execute/executor.h"

/* Begins to flush the ports; x->n_left of them are not done at once. */
void mc_flush_start(mc_executor_t *x);
/* Asks after them. */
void mc_flush_poll(mc_executor_t *x);
/* Of a run that has failed: asks after none any more. */
void mc_flush_drop(mc_executor_t *x);

#endif
