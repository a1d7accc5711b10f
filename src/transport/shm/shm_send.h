/* Sending: writes messages to slots and pages, or offers them to their receivers. A message
 * without room waits in the link's `sending` queue. */
#ifndef MC_TRANSPORT_SHM_SEND_H
#define MC_TRANSPORT_SHM_SEND_H

#include "transport/shm/shm_link.h"

int mc_shm_send(mc_peer_t *peer, const mc_message_t *m, mc_io_t *io);
void mc_shm_tell(mc_transport_t *t);

/* Continues the sends that wait; returns the number of events. */
uint32_t mc_shm_send_on(mc_shm_link_t *link);

/* Is there room for the first send, or reply, that waits? */
bool mc_shm_has_room(mc_shm_link_t *link);

/* The receiver has the whole message that was offered. */
void mc_shm_finish_offer(mc_shm_link_t *link, mc_io_t *io);

/* Makes a filled slot visible to the receiver; mc_shm_wake wakes it if it sleeps; mc_shm_publish
 * does both. */
void mc_shm_publish_only(mc_shm_link_t *link, mc_shm_slot_t *slot);
void mc_shm_wake(mc_shm_link_t *link);
void mc_shm_publish(mc_shm_link_t *link, mc_shm_slot_t *slot);

#endif
