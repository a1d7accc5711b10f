/*
 * A whole mesh in one process, for tests: one hub per dimension, one transport per rank on it.
 * Deterministic, and unbuffered: a send completes when its receive is there, so that a schedule
 * that leans on buffering does not pass. Completions are seen by their rank's own progress only.
 */
#ifndef MC_TRANSPORT_INPROC_H
#define MC_TRANSPORT_INPROC_H

#include "transport/transport.h"

/* Transports 0 … n - 1, each to be closed by its rank; the hub goes with the last. */
int mc_inproc_hub(int32_t n, mc_transport_t **transports);

#endif
