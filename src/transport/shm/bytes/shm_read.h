/* Moves a message's bytes: from the peer's memory, or between its spans and a page. */
#ifndef MC_TRANSPORT_SHM_READ_H
#define MC_TRANSPORT_SHM_READ_H

#include "transport/transport.h"

#include <sys/types.h>

/* Large enough that system calls cost little per byte; small enough that a piece to be reduced
 * stays in the core's cache. */
enum { MC_SHM_PIECE_BYTES = 1 << 16, MC_SHM_ASIDE = 64 };
_Static_assert(MC_SHM_PIECE_BYTES % MC_PIECE_UNIT == 0, "elements are not cut");

/* A buffer that stays in the cache, for a piece that begins 0 or ASIDE bytes behind its start. */
typedef struct {
    _Alignas(MC_SHM_ASIDE) char data[MC_SHM_PIECE_BYTES + MC_SHM_ASIDE];
} mc_shm_piece_t;

/* Reads the next bytes offered to `io`, at most `most`: to its spans, or through `piece` to its
 * consumer. Returns how many, or -1 with errno set, and `io` as it was. */
ssize_t mc_shm_read(pid_t pid, mc_io_t *io, size_t most, mc_shm_piece_t *piece);
/* Writes n bytes to `to` in the peer's memory. Returns whether it could. */
bool mc_shm_write(pid_t pid, uint64_t to, const void *from, size_t n, mc_shm_piece_t *piece);

/* Copies the next n bytes of the message's spans; `out`: from `data` to the spans, else from the
 * spans to `data`. */
void mc_shm_move(mc_io_t *io, char *data, size_t n, bool out);
/* Passes over the next n bytes of a send. */
void mc_shm_skip(mc_io_t *io, size_t n);
/* Passes the next n bytes of a receive from `data` to its spans or its consumer. */
void mc_shm_take(mc_io_t *io, const char *data, size_t n);

#endif
