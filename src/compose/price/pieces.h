/*
 * The cut rule: how many segments a phase needs so that its messages can be paced by the window
 * (runtime/execute/hold.h, credit.h). A message waits for the window as a whole, so where sends stream it
 * must be a fraction of what a rank may have in flight. The planner counts these segments in its prices.
 */
#ifndef MC_COMPOSE_PIECES_H
#define MC_COMPOSE_PIECES_H

#include "compose/algorithms/placement.h"
#include "compose/algorithms/registry.h"

/* How the library paces the plan of a strategy. */
typedef struct {
    /* `wire`: the dimension whose wire streams; -1: none does. `beside`: meshes that share its ports
     * concurrently; 0 means 1. As in mc_wiring_t. */
    int32_t wire, beside;
    size_t window; /* bytes that may be in flight through the wire's ports */
    /* Messages are not cut below this size: bytes that the wire carries in two round trips, so that a
     * message's latency stays a fraction of its time. */
    size_t least;
} mc_stream_t;

/* The most segments that the cut rule asks for: they cut 64 MiB into pieces of 32 KiB. */
enum { MC_MAX_PIECES = 2048 };

/* Ranks that share a port may together have one window in flight, a property of the wire (`window` in
 * mesh/link.h): enough to keep the wire busy, and no more than the queues of switches hold. A rank that has
 * the port for itself may have 1 / MC_HOLD_ALONE of it, which is enough for a ring to keep the wire busy.
 * (Measurements: docs/lab-notes/constants.md.) */
enum { MC_HOLD_ALONE = 2 };

/* A message waits for the window as a whole, so what a rank may have in flight is divided into this many
 * messages; with fewer the wire runs dry while one waits. This also holds for chains, although credits pace
 * them: a rank's credit queues behind the data that the rank forwards. (Measurements:
 * docs/lab-notes/constants.md.) */
enum { MC_HOLD_PIECES = 4 };
/* Other phases with credits use halves: the next message is in flight while one arrives, and smaller ones
 * would only add headers. */
enum { MC_HOLD_CREDITED = 2 };

/* Bytes that each of `ranks` ranks may have in flight through the ports that they share. */
static inline size_t mc_hold_ahead(size_t window, int32_t ranks)
{
    return window / (size_t)(ranks > MC_HOLD_ALONE ? ranks : MC_HOLD_ALONE);
}
/* Size of their messages in bytes: where sends are held back, and where only credits pace them. */
static inline size_t mc_hold_piece(size_t window, int32_t ranks)
{
    return mc_hold_ahead(window, ranks) / MC_HOLD_PIECES;
}
static inline size_t mc_hold_credited(size_t window, int32_t ranks)
{
    return mc_hold_ahead(window, ranks) / MC_HOLD_CREDITED;
}

/* Mean size of a phase's messages on links that are not pulled, in one segment, as a multiple of the
 * vector's bytes; the largest over dimensions. 0: there are none. */
double mc_pieces_message(const mc_phase_cost_t *cost, const mc_links_t *links);
/* The number of segments that a phase needs, a power of two, if its messages have a mean of `bytes` bytes
 * in one segment. */
uint32_t mc_pieces_needed(const mc_stream_t *stream, const mc_mesh_t *mesh, int32_t algorithm,
                          mc_dims_t dims, const mc_placement_t state[MC_MAX_DIMS], double bytes);

#endif
