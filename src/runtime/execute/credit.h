/*
 * Credits pace sends that no reply paces. Where several ranks send to one without hearing from it
 * (a star that gathers), their messages together overflow the queue before its port, and TCP
 * recovers only after a timeout (incast: Phanishayee et al. 2008). Where one sends to several (a
 * star that scatters) or to the next of a chain, it overflows the queue of its own port. A credit
 * is an empty message from the receiver to the sender. A phase uses one kind of the two:
 *
 * - Request credits, from several to one: the receiver requests each message that would exceed the
 *   bytes allowed in flight to it (mc_hold_ahead), once an earlier one has arrived. The first
 *   messages of each sender, which all may send at once, need no request.
 * - Completion credits, from one to several and along a chain: the receiver confirms each message,
 *   and the sender goes on while no more than those bytes are in flight. A rank of a chain cannot
 *   infer from its receives how far its sends are; behind a late one they would pile up, and go
 *   out at once.
 *
 * Phases that send little use none. Earlier means in program order: a message only ever waits for
 * an earlier one of the same phase. So no cycle of waits arises: ranks may even go through their
 * steps one after another where the sends of those phases wait for their receivers
 * (tests/unit/test_hold.c).
 */
#ifndef MC_RUNTIME_CREDIT_H
#define MC_RUNTIME_CREDIT_H

#include "runtime/execute/executor.h"

/* For the binding measured last: finds the messages that have credits, and links those that wait
 * for them. */
void mc_credit_measure(mc_executor_t *x);
/* The following serve runs with credits (x->n_credits > 0). This one is called at the start,
 * after the lanes were reset: posts receives for credits, and sends the first requests. */
void mc_credit_start(mc_executor_t *x);
/* After a message was received, sends the credits that follow from it; after a send, nothing. */
void mc_credit_follow(mc_executor_t *x, const mc_task_t *task);
/* Returns a lane whose next message has received its credit; NULL: none has. Also continues
 * lanes that send credits, once their last one is complete. */
mc_lane_t *mc_credit_next(mc_executor_t *x);

#endif
