/*
 * The limits of pacing: what a rank may have in flight, and the largest message that this allows. Pure functions, used
 * by the planner, which counts the segments they need in its prices, and by the executor (runtime/execute/pace.h, which
 * says what is bounded and why). Both use the same properties of a phase, so a plan has the messages that the executor
 * can pace.
 *
 * Every limit is a part of the window. The window is a field of the link; without it, it is what the wire carries in
 * two round trips, twice the bandwidth-delay product, and MC_LINK_WINDOW at least (mc_link_window).
 */
#ifndef MC_COMPOSE_LIMITS_H
#define MC_COMPOSE_LIMITS_H

#include "compose/algorithms/placement.h"
#include "compose/algorithms/registry.h"

typedef struct {
    /* `wire`: the innermost dimension whose transport streams; ranks that differ only further inside share its ports.
     * -1: none streams, nothing is paced. `concurrent`: meshes that use these ports at once (parts of a split); 0
     * means 1. */
    int32_t wire, concurrent;
    /* Bytes that all ranks of a box may have in flight through the ports (mc_links_window). */
    size_t window;
    /* Bytes below which no message is cut: what the wire carries in two round trips (mc_links_least), so that a
     * message's latency stays a fraction of its time. */
    size_t least;
} mc_pacing_t;

/* Returns the pacing of a whole mesh on these links. */
mc_pacing_t mc_pacing_of(const mc_links_t *links, const mc_mesh_t *mesh, int32_t wire);

/*
 * Parts of the window. The first follows from the window's size; the others are the least numbers that keep a wire
 * busy (measurements: docs/lab-notes/constants.md).
 *   MC_PACE_ALONE     A single rank that uses the ports of its box may have 1 / MC_PACE_ALONE of the window in
 *                     flight. Of one port that is half of the window: by default the bandwidth-delay product, which
 *                     keeps the wire busy.
 *   MC_PACE_MESSAGES  Messages into which a rank's share is divided. A message waits as a whole for space in the
 *                     share, so part of the share is idle, on average half a message. Chains need as many: the credit
 *                     of a rank queues behind the data that the rank forwards.
 *   MC_PACE_CREDITED  The same where only credits pace a phase: one message is in flight while another arrives. More
 *                     would only add headers.
 */
enum { MC_PACE_ALONE = 2, MC_PACE_MESSAGES = 4, MC_PACE_CREDITED = 2 };

/* The most segments that pacing asks for. It bounds the memory of a plan, which grows with its segments: these cut 64
 * MiB into messages of 32 KiB, those of a single rank behind one port with the least window. Longer vectors have longer
 * messages. */
enum { MC_PACE_SEGMENTS = 2048 };

/* Ranks that share the ports of one box, of which those along the dimensions in `single` (one bit each) do not send. */
static inline int32_t mc_pacing_ranks(const mc_pacing_t *pacing, const mc_mesh_t *mesh,
                                      unsigned single)
{
    return mc_mesh_sharers(mesh, pacing->wire, single) *
           (pacing->concurrent > 0 ? pacing->concurrent : 1);
}
/* Bytes that each of `ranks` ranks may have in flight through the ports that they share. */
static inline size_t mc_pacing_share(size_t window, int32_t ranks)
{
    return window / (size_t)(ranks > MC_PACE_ALONE ? ranks : MC_PACE_ALONE);
}
/* Is a phase in which one rank sends to one, such as a tree on a line of two, paced by credits? Only if others
 * send through the same ports: a rank by itself leaves it to the wire's own flow control. `all_send`: the phase
 * exchanges, so the window rule applies. */
static inline bool mc_pacing_pairs(bool all_send, int32_t ranks)
{
    return !all_send && ranks > 1;
}
/* Largest message in bytes, where the window paces sends and in chains; and where only credits do. */
static inline size_t mc_pacing_message(size_t window, int32_t ranks)
{
    return mc_pacing_share(window, ranks) / MC_PACE_MESSAGES;
}
static inline size_t mc_pacing_credited(size_t window, int32_t ranks)
{
    return mc_pacing_share(window, ranks) / MC_PACE_CREDITED;
}

/* Mean size of a phase's messages on links that are not pulled, in one segment, as a multiple of the vector's bytes;
 * the largest over dimensions. 0: there are none. */
double mc_pacing_mean(const mc_phase_cost_t *cost, const mc_links_t *links);
/* The number of segments, a power of two, that a phase needs so that no message is larger than pacing allows, if its
 * messages have a mean of `bytes` bytes in one segment. */
uint32_t mc_pacing_segments(const mc_pacing_t *pacing, const mc_mesh_t *mesh, int32_t algorithm,
                            mc_dims_t dims, const mc_placement_t state[MC_MAX_DIMS], double bytes);

#endif
