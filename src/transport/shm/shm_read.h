/* Moving a message's bytes: from the peer's memory, or between its spans and a page. */
#ifndef MC_TRANSPORT_SHM_READ_H
#define MC_TRANSPORT_SHM_READ_H

#include "transport/transport.h"

#include <sys/types.h>

/* A piece to be reduced then lies in the core's cache; reading costs 0.4 us a call besides its
 * bytes. */
enum { MC_SHM_PIECE_BYTES = 1 << 16 };
_Static_assert(MC_SHM_PIECE_BYTES % MC_PIECE_UNIT == 0, "elements are not cut");

/* The next `most` bytes at most of what was offered to `io`: to its spans, or through `piece` (of
 * MC_SHM_PIECE_BYTES bytes) to its taker. How many, or -1 with errno. */
ssize_t mc_shm_read(pid_t pid, mc_io_t *io, size_t most, char *piece);

/* The next n bytes of the message's spans, from `data` (out of it) or to it. */
void mc_shm_move(mc_io_t *io, char *data, size_t n, bool out);
/* A receive's next n bytes, from `data` to its spans or its taker. */
void mc_shm_take(mc_io_t *io, const char *data, size_t n);

#endif
