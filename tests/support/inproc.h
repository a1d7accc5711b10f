/*
 * A whole mesh in one process, for tests: one hub per dimension, one transport per rank on it.
 * Deterministic and unbuffered: a send completes when its receive is posted, so a schedule that
 * relies on buffering deadlocks. A rank sees completions only in its own progress.
 */
#ifndef TESTS_SUPPORT_INPROC_H
#define TESTS_SUPPORT_INPROC_H

#include "transport/transport.h"

/* Transports 0 … n - 1. Each rank closes its own; the last close frees the hub. */
int mc_inproc_hub(int32_t n, mc_transport_t **transports);

/*
 * `ranks` has room for as many handles as the mesh has ranks; the caller destroys each. Blocking
 * calls would wait for ranks that cannot run: start the requests of all ranks, and call
 * meshcoll_test in turn.
 */
int mc_inproc_create(const char *mesh, const meshcoll_params_t *params, meshcoll_t **ranks);

#endif
