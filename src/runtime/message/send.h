/* The sender's side of tagged messages. */
#ifndef MC_MESSAGE_SEND_H
#define MC_MESSAGE_SEND_H

#include "runtime/message/transfer.h"

/* Starts a send to another rank; its flow is set. */
int mc_send_start(meshcoll_t *h, mc_transfer_t *t);
/* A READY has arrived: sends the data that it asks for. */
int mc_send_ready(meshcoll_t *h, mc_flow_t *flow, const mc_header_t *ready);
/* Credits have arrived: announces the sends that waited for them. */
int mc_send_credits(meshcoll_t *h, mc_flow_t *flow, uint32_t n);

#endif
