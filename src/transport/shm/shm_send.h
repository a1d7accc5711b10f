/* Sending: messages into slots and pages, or offered to their receivers; what there is no room for waits. */
#ifndef MC_TRANSPORT_SHM_SEND_H
#define MC_TRANSPORT_SHM_SEND_H

#include "transport/shm/shm_link.h"

int mc_shm_send(mc_peer_t *peer, const mc_message_t *m, mc_io_t *io);
void mc_shm_tell(mc_transport_t *t);

/* Goes on with the sends that wait; how many events there were. */
uint32_t mc_shm_send_on(mc_shm_link_t *link);

/* The receiver has what was offered. */
void mc_shm_finish_offer(mc_shm_link_t *link, mc_io_t *io);

/* The slot may be read; a reader who sleeps is woken by the second. */
void mc_shm_publish_only(mc_shm_link_t *link, mc_shm_slot_t *slot);
void mc_shm_wake(mc_shm_link_t *link);
void mc_shm_publish(mc_shm_link_t *link, mc_shm_slot_t *slot);

#endif
