/*
 * Greeting: both ends of a new connection wait until it stands in both directions. Some transports
 * (UCX over TCP, where both sides may connect at once) need both ends' progress for that, and a
 * rank that is done with its part may be gone for long, in MPI or in a kernel.
 */
#ifndef MC_RUNTIME_GREET_H
#define MC_RUNTIME_GREET_H

#include "runtime/handle/handle.h"

/* Collective over the connections' ranks: those among `peer` that were not greeted yet. */
int mc_greet(meshcoll_t *h, mc_peer_t *const *peer, uint32_t n);

#endif
