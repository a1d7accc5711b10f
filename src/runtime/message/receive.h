/* The receiver's side of tagged messages: matching, and credits. */
#ifndef MC_MESSAGE_RECEIVE_H
#define MC_MESSAGE_RECEIVE_H

#include "runtime/message/transfer.h"

/* Starts a receive: matches it with the oldest message that fits, or posts it. */
int mc_receive_start(meshcoll_t *h, mc_transfer_t *t);
/* Completes a receive if nothing has matched it yet. */
void mc_receive_cancel(meshcoll_t *h, mc_transfer_t *t);
/* An announcement has arrived: matches it with the oldest receive that fits, or keeps it. */
int mc_receive_arrival(meshcoll_t *h, mc_flow_t *flow, mc_arrival_t *a);
/* Sends to this rank itself. */
int mc_receive_own(meshcoll_t *h, mc_transfer_t *send);

#endif
