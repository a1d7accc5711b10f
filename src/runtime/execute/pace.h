/*
 * Pacing: flow control between boxes. It bounds the bytes in flight through the ports of a box, on transports whose
 * sends complete without the receiver (mc_transport_t.streams), such as UCX over TCP.
 *
 * Pacing bounds two amounts. The unit is the share of a rank: the windows of all ports of its box, divided by the
 * number of ranks that use these ports, or by 2 for a single rank (mc_pacing_share).
 * - Bytes that a rank sends: its share. TCP's send buffers accept megabytes at once, and the ranks of a box together
 *   can overflow a queue on the path (docs/lab-notes/network.md).
 * - Bytes that all senders together have in flight to one receiver: the share of the receiver. More would overflow
 *   the queue before the receiver's port, and TCP recovers only after a timeout (incast: Phanishayee et al. 2008).
 *
 * There are three rules. The window applies to every phase; some phases use credits in addition.
 * - Window. It has an effect where a rank sends and receives in the same phase. The receives show the
 *   progress of the wires: a send starts when at most a share of the bytes of the receives before it, in program
 *   order, is outstanding.
 * - Request credits, if several ranks send to one rank that sends nothing back (gather by a star). A
 *   credit is an empty message from the receiver to the sender. The first messages of each sender, up to the
 *   receiver's share divided by the number of senders, need no credit. The receiver requests each later message when
 *   enough earlier ones have arrived.
 * - Completion credits, if one rank sends to several (scatter by a star), to the next rank of a chain, or to
 *   one other rank while ranks beside it send to theirs through the same ports (a tree of two boxes on each line).
 *   The receiver acknowledges each message, and the sender continues while at most a share is in flight. The window
 *   does not suffice in a chain: receives of a rank may complete while one of its sends is late, and the sends after
 *   that one would start together. Three cases have no credits: a rank of a chain that receives at most the window of a
 *   box in the phase, a rank of another phase that receives at most the sender's share divided by the number of
 *   receivers, and a pair of ranks that has the ports to itself.
 *
 * Why pacing does not deadlock: a message waits only for an earlier one of the same phase, in program order. So no
 * cycle of waits arises. tests/unit/test_window.c tests a stricter condition: all plans complete if every rank runs
 * its steps strictly one after another and, in phases with credits, a send blocks until its receive is reached.
 *
 * Why both ends agree: three inputs determine which messages of a phase have credits: the traffic of the phase
 * (mc_traffic_t), the sizes of the messages between the two ranks, and mc_pacing_t. All are the same at both ends:
 * the first two follow from strategy and count, the last one from mesh and links, which all ranks have.
 *
 * Limits: compose/pace/limits.h. The planner uses the same limits, so that strategies have enough segments.
 */
#ifndef MC_RUNTIME_PACE_H
#define MC_RUNTIME_PACE_H

#include "runtime/execute/state.h"

/* Finds the messages of the current binding that have credits, and links each that waits, by either rule, to the
 * message that it waits for. */
void mc_pace(mc_executor_t *x);

/* The next three functions are for runs with credits (x->n_credits > 0). A lane is the sequence of messages to, or
 * from, one peer in one phase (mc_lane_t). */

/* Starts a run, after the lanes were reset: posts receives for credits, and sends the first requests. */
void mc_credit_start(mc_executor_t *x);
/* Sends the credits that become due when `task`, a receive, is complete. No effect for a send. */
void mc_credit_follow(mc_executor_t *x, const mc_task_t *task);
/* Returns a lane whose next message has received its credit, or NULL. Also sends the next due credit of lanes whose
 * previous one is complete. */
mc_lane_t *mc_credit_next(mc_executor_t *x);

/* Returns the share: the bytes that this rank may have in flight in a phase. */
static inline size_t mc_pace_share(const mc_executor_t *x, uint8_t phase)
{
    return mc_pacing_share(x->pacing.window, mc_pacing_ranks(&x->pacing, &x->plan->layout.mesh,
                                                             x->plan->traffic[phase].rooted));
}

#endif
