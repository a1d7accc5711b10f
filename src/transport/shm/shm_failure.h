/*
 * Failures inside a box. A rank whose mesh failed says so in its segment, and why, before its caller may change the
 * buffers of what it had offered; who reads such a message looks there afterwards, as at a sequence lock.
 */
#ifndef MC_TRANSPORT_SHM_FAILURE_H
#define MC_TRANSPORT_SHM_FAILURE_H

#include "transport/shm/shm_link.h"

/* After a message was read from its sender's memory: OK where it was still the message. */
int mc_shm_check_sender(const mc_shm_link_t *link);

/* As in mc_transport_ops_t. */
int mc_shm_check(mc_transport_t *t);
void mc_shm_abandon(mc_transport_t *t, const char *why);

#endif
