/*
 * Both ends move a large message if both have time: the receiver reads it from the front, and the
 * sender, which would only wait, writes it from the back. Each claims half of what is left, so that
 * both finish together.
 */
#ifndef MC_TRANSPORT_SHM_SHARE_H
#define MC_TRANSPORT_SHM_SHARE_H

#include "transport/shm/bytes/shm_read.h"
#include "transport/shm/shm_memory.h"
#include "transport/transport.h"

/* Sender: the message whose receiver has requested help. */
typedef struct {
    mc_io_t *io;         /* NULL: none */
    uint64_t to, number; /* where to write in the receiver's memory; number of the sharing */
} mc_shm_helped_t;

/* Is sharing faster than reading alone? `oversubscribed`: ranks share cores. */
bool mc_shm_can_share(size_t bytes, bool oversubscribed);

/* Receiver, on its channel to the sender; a channel shares one message at a time. Returns the
 * number of the sharing. */
uint64_t mc_shm_share_begin(mc_shm_share_t *share);
/* Claims the next bytes of a message of `bytes`, at most `most`. 0: all are claimed. */
size_t mc_shm_share_front(mc_shm_share_t *share, size_t bytes, size_t most);
/* The receiver stops: claims all that is left, so that the sender starts no further write.
 * Returns the bytes that the sender has claimed. */
size_t mc_shm_share_stop(mc_shm_share_t *share, size_t bytes);
/* Once all is claimed: has the sender written its `rest` bytes? REFUSED: it cannot write and
 * stops. */
typedef enum { MC_SHM_SHARE_OPEN, MC_SHM_SHARE_DONE, MC_SHM_SHARE_REFUSED } mc_shm_rest_t;
mc_shm_rest_t mc_shm_share_rest(const mc_shm_share_t *share, size_t rest);
/* Tells valgrind, where it runs, that the bytes of the receive that are not done are written: it does not see
 * what another process writes. */
void mc_shm_share_note(const mc_io_t *io);

/* Sender: claims and writes the next bytes; returns the number of events. At the end
 * `helped->io` is NULL. */
uint32_t mc_shm_share_help(mc_shm_share_t *share, pid_t pid, mc_shm_helped_t *helped,
                           mc_shm_piece_t *piece);

#endif
