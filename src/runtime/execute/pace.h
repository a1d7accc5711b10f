/*
 * Pacing: flow control on transports whose sends complete without the receiver (mc_transport_t.streams), such as UCX
 * over TCP. It bounds to a share (mc_pacing_share) what a rank sends, as TCP's send buffers accept megabytes at once, and
 * what all senders together have in flight to one receiver: more would overflow the queue before its port, and TCP
 * recovers only after a timeout (incast: Phanishayee et al. 2008). docs/dev/runtime.md#pacing says why and when.
 *
 * - Window. In a phase in which a rank sends and receives, a send starts when at most a share of the bytes of the
 *   receives before it, in program order, is outstanding.
 * - Request credits, if several ranks send to one. The first messages of each sender, up to the receiver's share divided
 *   by the number of senders, need none. The receiver requests each later message when enough earlier ones have come.
 * - Completion credits, if one rank sends to several, to the next rank of a chain, or to one other rank while ranks
 *   beside it send to theirs through the same ports. The receiver acknowledges each message, and the sender continues
 *   while at most a share is in flight. The window does not suffice in a chain: receives of a rank may complete while
 *   one of its sends is late, and the sends after that one would start together. There are none where a rank of a chain
 *   receives at most the window of a box, or one of several receivers at most its part of the sender's share.
 *
 * No deadlock: a message waits only for an earlier one of the same phase, in program order. tests/unit/test_window.c
 * tests a stricter condition. Both ends agree which messages have credits, as that follows from the traffic of the phase,
 * the sizes of the messages between the two ranks, and mc_pacing_t, which all ranks have.
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
