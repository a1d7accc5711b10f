/*
 * Holding back: where sends stream, TCP's buffers take megabytes at once, and what a box's ranks have
 * sent together overflows a queue on the way (docs/experiments.md). In a phase in which a rank sends and
 * receives, what comes tells how far the wires are: the sends of a phase run ahead of the receives
 * between them, in program order, by so many bytes at most; each message that comes frees what waits for
 * it. Program order runs to the end on all ranks (tests/unit/test_hold.c), so nobody waits for ever.
 */
#ifndef MC_RUNTIME_HOLD_H
#define MC_RUNTIME_HOLD_H

#include "runtime/execute/executor.h"

/* What ranks that share a port may send ahead together is a property of the wire (`window` in mesh/link.h): as much
 * as keeps it busy, and no more than queues of switches hold. With 512 KiB alltoalls of 1 MiB lost packets before
 * NICs that queue 500 KB, and took 1.09 to 1.12 of the bound on 2x8, 1.08 to 1.10 on 4x4; with 256 KiB they lost none
 * and took 1.08 and 1.07 (docs/experiments.md). One rank by itself has half of it: a ring keeps the wire busy with
 * that. */
enum { MC_HOLD_ALONE = 2 };

/* A message is held back as a whole. In quarters 8 ranks in boxes of 4, 3 and 1 exchanged 1 MiB blocks at 200 Mbit/s
 * in 1.06 of the bound, in halves 1.12, in one piece 1.22 to 1.32; rings of allgathers of 16 MiB on 4x4 and
 * 8x2 took 1.05 and 1.09, 1.27 and 1.58, 1.20 and 1.80 (docs/experiments.md). Chains as well, although credits pace
 * them: a rank's credit comes behind what it sends on itself. Reduce of 64 MiB on 4x4 took 1.06 in quarters, 1.16 to
 * 1.21 in halves, 1.18 to 1.25 in pieces of twice what may be ahead. */
enum { MC_HOLD_PIECES = 4 };
/* What else credits pace comes in halves: the next one is on its way while one comes, and each is a header more
 * (docs/experiments.md). */
enum { MC_HOLD_CREDITED = 2 };

/* Bytes that each of so many ranks may send ahead through the ports they share, and the messages to cut them into. */
static inline size_t mc_hold_ahead(size_t window, int32_t ranks)
{
    return window / (size_t)(ranks > MC_HOLD_ALONE ? ranks : MC_HOLD_ALONE);
}
static inline size_t mc_hold_piece(size_t window, int32_t ranks)
{
    return mc_hold_ahead(window, ranks) / MC_HOLD_PIECES;
}
static inline size_t mc_hold_credited(size_t window, int32_t ranks)
{
    return mc_hold_ahead(window, ranks) / MC_HOLD_CREDITED;
}

/* For the binding that was measured last: sets `held` of the sends that wait for a message, and chains
 * them at the receive. */
void mc_hold_sends(mc_executor_t *x);

#endif
