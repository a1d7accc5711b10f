/*
 * Greeting: both ends of a new connection wait until it works in both directions. Some transports
 * need progress at both ends to connect (UCX over TCP, where both sides may connect at once), and a
 * rank that has finished its part may not return to the library for long, while it is in MPI or in
 * a compute kernel.
 */
#ifndef MC_RUNTIME_GREET_H
#define MC_RUNTIME_GREET_H

#include "runtime/handle/handle.h"

/* Greets those of the `n` connections that were not greeted yet. Collective over the ranks at both
 * ends; ERR_TRANSPORT. */
int mc_greet(meshcoll_t *h, mc_peer_t *const *peer, uint32_t n);

#endif
