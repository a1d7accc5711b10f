/*
 * Pacing by the window. Where sends stream, TCP's buffers accept megabytes at once, and what the
 * ranks of a box send together overflows a queue on the way (docs/lab-notes/network.md). In a phase in
 * which a rank sends and receives, its receives tell how far the wires are: sends run ahead of the
 * receives before them in program order by a bounded number of bytes. A send is held until the
 * receive that far before it is complete. Program order completes on all ranks
 * (tests/unit/test_hold.c), so this does not deadlock.
 */
#ifndef MC_RUNTIME_HOLD_H
#define MC_RUNTIME_HOLD_H

#include "compose/price/pieces.h"
#include "runtime/execute/executor.h"

/* For the binding measured last: sets `held` of the sends that wait for a receive, and links
 * them to it. */
void mc_hold_sends(mc_executor_t *x);

#endif
