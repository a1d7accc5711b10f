/*
 * Credits: where several ranks send to one without hearing from it (a star that gathers), what they send together
 * overflows the queue before its port, and TCP takes tens of milliseconds to find out (incast: Phanishayee et al.
 * 2008); where one sends to several (a star that scatters), what it sends overflows its own port's. A credit is a
 * message of no bytes from the receiver to the sender, of which one kind or the other is in use in a phase:
 *
 * - from several to one the receiver asks for messages: for each that would come on top of what may be on its way
 *   to it (mc_hold_ahead), when one before it has come. A first part of each sender's, which all may send at once,
 *   needs no asking.
 * - from one to several each receiver says what has come, and the sender goes on when what is on the way is no more
 *   than that. What is little in all is sent without. So it is along a chain: what a rank receives tells it nothing of
 *   how far its own sends are, and what piles up behind one that was late goes out at once and overflows its port's queue.
 *
 * So small collectives know nothing of this. Before and after are in program order, and both kinds only
 * let a message wait for one before it in the same phase: that runs to the end, as all ranks may even go through
 * their steps one after another where those phases' sends wait for their receivers (tests/unit/test_hold.c).
 */
#ifndef MC_RUNTIME_CREDIT_H
#define MC_RUNTIME_CREDIT_H

#include "runtime/execute/executor.h"

/* For the binding that was measured last: which messages have credits, and who waits for them. */
void mc_credit_measure(mc_executor_t *x);
/* Both where there are credits. At the start, after the lanes were reset: awaits credits, and gives the first ones. */
void mc_credit_start(mc_executor_t *x);
/* A message has come, or a send is complete: gives what credits follow from that. */
void mc_credit_follow(mc_executor_t *x, const mc_task_t *task);
/* A lane whose first message that had no credit has one now; NULL: none has. */
mc_lane_t *mc_credit_next(mc_executor_t *x);

#endif
