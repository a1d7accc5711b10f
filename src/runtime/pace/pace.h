/*
 * Pacing: bounds what is in flight through the ports between boxes.
 *
 * What is bounded, where a transport streams (mc_transport_t):
 * - Bytes in flight through the ports of a box. TCP's send buffers accept megabytes at once, and what the ranks of a
 *   box send together overflows a queue on the way (docs/lab-notes/network.md). The ranks that share a port have one
 *   window together, of which each has an equal share.
 * - Messages towards one receiver. Those of several senders together overflow the queue before the receiver's port,
 *   and TCP recovers only after a timeout (incast: Phanishayee et al. 2008). They have the share of their receiver.
 *
 * A phase uses one of three rules:
 * - Window (window.c), in a phase in which a rank sends and receives. Its receives tell how far the wires are: a send
 *   starts when at most a share of receives before it, in program order, is incomplete.
 * - Request credits (credit.c), where several ranks send to one without a message in return (a star that gathers). A
 *   credit is an empty message from the receiver to the sender. The receiver requests each message that exceeds its
 *   share, once an earlier one has arrived. The first messages of each sender, which all may send at once, need no
 *   request.
 * - Completion credits (credit.c), where one rank sends to several (a star that scatters) or to the next of a chain.
 *   The receiver confirms each message, and the sender continues while at most a share is in flight. A rank of a chain
 *   cannot infer from its receives how far its sends are: behind a late one they would accumulate, and start at once.
 *   A chain that carries at most a window, and other phases that send at most a share, have no credits.
 *
 * Why this does not deadlock: a message only waits for an earlier one of the same phase, in program order. So no cycle
 * of waits arises; ranks may even run their steps one after another where sends of phases with credits wait for
 * their receivers (tests/unit/test_window.c).
 *
 * Why both ends agree: the rule of a phase and which of its messages have credits follow from the traffic of the phase
 * (mc_traffic_t), the sizes of the messages between the two ranks, and mc_pacing_t. These are the same at both ends:
 * the first two follow from strategy and count, the last one from mesh and links, which all ranks have.
 *
 * Which limits: compose/pace/limits.h. The planner uses them too, so that strategies have enough segments.
 */
#ifndef MC_RUNTIME_PACE_H
#define MC_RUNTIME_PACE_H

#include "runtime/state/state.h"

/* For the binding measured last: finds the sends that wait for a receive, and links them to it. */
void mc_pace_window(mc_executor_t *x);
/* For the binding measured last: finds the messages that have credits, and links those that wait for them. */
void mc_pace_credits(mc_executor_t *x);

/* The following serve runs with credits (x->n_credits > 0). This one is called at the start, after the lanes were
 * reset: posts receives for credits, and sends the first requests. */
void mc_credit_start(mc_executor_t *x);
/* After a message was received, sends the credits that follow from it; after a send, nothing. */
void mc_credit_follow(mc_executor_t *x, const mc_task_t *task);
/* Returns a lane whose next message has received its credit; NULL: none has. Also continues lanes that send credits,
 * once their last one is complete. */
mc_lane_t *mc_credit_next(mc_executor_t *x);

/* Bytes that each rank of a port may have in flight in a phase. */
static inline size_t mc_pace_share(const mc_executor_t *x, uint8_t phase)
{
    return mc_pacing_share(x->pacing.window, mc_pacing_ranks(&x->pacing, &x->plan->layout.mesh,
                                                             x->plan->traffic[phase].rooted));
}

#endif
