/* The board of a process: what its ranks publish, and when a wait has lasted for too long. The caller
 * holds the handle's lock, where it has one. */
#ifndef MC_WAITS_BOARD_H
#define MC_WAITS_BOARD_H

#include "runtime/handle/request.h"
#include "runtime/waits/waits.h"

/* Opens the board of a root mesh. ERR_NO_MEMORY. */
int mc_waits_open(meshcoll_t *h);
/* A sub-mesh or group uses the board of its root, once it has a context. */
void mc_waits_join(meshcoll_t *h);
/* Leaves the board; who has opened it frees it. */
void mc_waits_close(meshcoll_t *h);

/* Publishes what the handle's running requests wait for, at time `now` (ms, CLOCK_MONOTONIC). Returns
 * OK, or ERR_TIMEOUT where one has been waited for longer than its limit. */
int mc_waits_look(meshcoll_t *h, int64_t now);
/* The mesh has failed: what it waited for then stays on the board. */
void mc_waits_break(const meshcoll_t *h);

/* A limit of the public interface, in seconds, as ms, rounded up; 0: none. ERR_INVALID_ARG where it is
 * no such number, without a text. */
int mc_timeout_ms(double seconds, int64_t *ms);

#endif
