/*
 * Largest messages where sends stream: what ranks send at once goes in pieces that can be held back, where nobody else
 * holds them (runtime/hold.h). So a phase needs a number of segments at least, which the planner knows as it ranks.
 */
#ifndef MC_COMPOSE_PIECES_H
#define MC_COMPOSE_PIECES_H

#include "compose/algorithms/placement.h"
#include "compose/algorithms/registry.h"

/* How a library runs what is planned. */
typedef struct {
    int32_t wire, beside; /* as in mc_wiring_t; `beside` 0: 1; `wire` -1: nothing streams */
    size_t window;        /* bytes in flight through its ports */
    /* Messages up to so many bytes are not cut: what the wire carries in two round trips, so that a message's own
     * latency stays a fraction of its time. */
    size_t least;
} mc_stream_t;

/* How far a vector is cut where messages are held back as a whole: 64 MiB into pieces of 32 KiB. */
enum { MC_MAX_PIECES = 2048 };

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

/* Multiple of the vector's bytes that a phase's messages between boxes have in the mean, in one segment; 0: none go
 * there. */
double mc_pieces_message(const mc_phase_cost_t *cost, const mc_links_t *links);
/* Segments that a phase needs, a power of two, if its messages have so many bytes in the mean in one. */
uint32_t mc_pieces_needed(const mc_stream_t *stream, const mc_mesh_t *mesh, int32_t algorithm,
                          mc_dims_t dims, const mc_placement_t state[MC_MAX_DIMS], double bytes);

#endif
