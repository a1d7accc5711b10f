/*
 * A large message is moved by both its ends, if both have time: its receiver reads it from the front, and its sender,
 * which would only wait, writes it from the back. Who comes first takes half of what is left, so that both end together.
 */
#ifndef MC_TRANSPORT_SHM_SHARE_H
#define MC_TRANSPORT_SHM_SHARE_H

#include "transport/shm/shm_memory.h"
#include "transport/transport.h"

/* Of a sender: the message whose receiver has asked for help. */
typedef struct {
    mc_io_t *io;         /* NULL: none */
    uint64_t to, number; /* where it goes in the receiver's memory; which sharing of the channel */
} mc_shm_helped_t;

/* Is it worth it? `crowded`: ranks share cores. */
bool mc_shm_can_share(size_t bytes, bool crowded);

/* The receiver's, in the channel to its sender. One message is shared at a time; its number. */
uint64_t mc_shm_share_begin(mc_shm_share_t *share);
/* Takes the next bytes of a message of `bytes`, `most` at most; 0: all are taken. */
size_t mc_shm_share_front(mc_shm_share_t *share, size_t bytes, size_t most);
/* The receiver reads no more: takes all that is left, so that its sender begins nothing either. Bytes that the sender took. */
size_t mc_shm_share_stop(mc_shm_share_t *share, size_t bytes);
/* Once all are taken: has the sender written its `rest`? REFUSED: it cannot, and will not. */
typedef enum { MC_SHM_SHARE_OPEN, MC_SHM_SHARE_DONE, MC_SHM_SHARE_REFUSED } mc_shm_rest_t;
mc_shm_rest_t mc_shm_share_rest(const mc_shm_share_t *share, size_t rest);

/* The sender's: writes the next bytes; 0: nothing is left to be written, and `helped` is at its end. */
uint32_t mc_shm_share_help(mc_shm_share_t *share, pid_t pid, mc_shm_helped_t *helped);

#endif
