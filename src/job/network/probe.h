/* Do addresses lead to their process? Where two hosts number networks alike, only a connection tells. */
#ifndef MC_HANDSHAKE_PROBE_H
#define MC_HANDSHAKE_PROBE_H

#include "job/network/wire.h"

/* Seconds that a probe takes at most; a network that drops its first packet is not used. */
#define MC_PROBE_SECONDS 1.0

/* Listens for probes, which the kernel answers: *listener is to be closed. The port; 0, with -1: none is free. */
uint16_t mc_probe_listen(int *listener);
/* Connects to n addresses, 32 at most, at once: a bit for each that has answered in time. */
uint32_t mc_probe_all(const mc_endpoint_t *to, int32_t n);

#endif
