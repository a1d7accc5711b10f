/*
 * Credits: where several ranks send to one without hearing from it (a star that gathers), what they send together
 * overflows the queue before its port, and TCP takes tens of milliseconds to find out (incast: Phanishayee et al.
 * 2008). So the receiver asks for messages: it gives a credit, a message of no bytes, for each that would come on
 * top of what may be on its way to it (mc_hold_ahead). A first part of each sender's, which all may send at
 * once, needs none: small collectives know nothing of this.
 *
 * A rank asks in program order: for a message when one before it has come, so that the same number of bytes stays
 * on its way. Program order runs to the end on all ranks (tests/unit/test_hold.c): the first message
 * that has not come was asked for, and its sender holds it back for nothing else than what comes before it.
 */
#ifndef MC_RUNTIME_CREDIT_H
#define MC_RUNTIME_CREDIT_H

#include "runtime/executor.h"

/* For the binding that was measured last: which messages need credits, and when they get theirs. */
void mc_credit_measure(mc_executor_t *x);
/* At the start, after the lanes were reset: awaits credits, and gives the first ones. */
void mc_credit_start(mc_executor_t *x);
/* A message has come: those that waited for its place are asked for. */
void mc_credit_ask(mc_executor_t *x, uint32_t first);
/* A lane whose next message may go as its credit has come; NULL: no other has. */
mc_lane_t *mc_credit_next(mc_executor_t *x);

#endif
