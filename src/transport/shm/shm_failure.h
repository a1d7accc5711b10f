/*
 * Failures within a machine. A rank whose mesh failed sets a flag and the reason in its segment
 * before its caller may change the buffers of messages it has offered. A reader checks the flag
 * after it has read such a message, as with a sequence lock.
 */
#ifndef MC_TRANSPORT_SHM_FAILURE_H
#define MC_TRANSPORT_SHM_FAILURE_H

#include "transport/shm/shm_link.h"

/* To call after a message was read from its sender's memory. OK: it was intact. */
int mc_shm_check_sender(const mc_shm_link_t *link);

/* See mc_transport_ops_t. */
int mc_shm_check(mc_transport_t *t);
void mc_shm_abandon(mc_transport_t *t, const char *why);

#endif
