/*
 * Holding back: where sends stream, TCP's buffers take megabytes at once, and what a box's ranks have
 * sent together overflows a queue on the way (docs/experiments.md). In a phase in which a rank sends and
 * receives, what comes tells how far the wires are: the sends of a phase run ahead of the receives
 * between them, in program order, by so many bytes at most; each message that comes frees what waits for
 * it. Program order runs to the end on all ranks (tests/unit/test_hold.c), so nobody waits for ever.
 */
#ifndef MC_RUNTIME_HOLD_H
#define MC_RUNTIME_HOLD_H

#include "compose/price/pieces.h"
#include "runtime/execute/executor.h"

/* For the binding that was measured last: sets `held` of the sends that wait for a message, and chains
 * them at the receive. */
void mc_hold_sends(mc_executor_t *x);

#endif
