/*
 * A whole mesh in one process, for tests: one hub per dimension, one transport per rank on it.
 * Deterministic and unbuffered: a send completes when its receive is posted, so a schedule that
 * relies on buffering deadlocks. A rank sees completions only in its own progress.
 */
#ifndef MC_TRANSPORT_INPROC_H
#define MC_TRANSPORT_INPROC_H

#include "transport/transport.h"

/* Transports 0 … n - 1. Each rank closes its own; the last close frees the hub. */
int mc_inproc_hub(int32_t n, mc_transport_t **transports);

#endif
