/*
 * A message to several ranks is written once, to a board in the sender's segment, and all receivers
 * read it there. It uses the board only if all of it has room at once, so the sender never waits
 * for a reader.
 */
#ifndef MC_TRANSPORT_SHM_BOARD_H
#define MC_TRANSPORT_SHM_BOARD_H

#include "transport/shm/shm_memory.h"
#include "transport/transport.h"

/* The sender's bookkeeping of its board. */
typedef struct {
    size_t room;             /* bytes of the board */
    size_t at[MC_SHM_POSTS]; /* offsets of the posts in use */
    uint32_t first, n;       /* posts in use, the oldest first; numbers are modulo MC_SHM_POSTS */
    size_t end;              /* end of the newest */
    uint32_t readers;        /* readers of the newest while it is unwritten; 0: it is written */
    uint32_t more;           /* sends of it that are still to start */
    mc_message_t message;    /* the newest */
    mc_io_queue_t waiting;   /* sends that complete when it is written */
} mc_shm_poster_t;

/* Finds room for the message on the board: that of the newest post, if this is another send of
 * it, or a new one. false: there is none, or it need not go there. */
bool mc_shm_post(mc_shm_poster_t *p, mc_shm_board_t *board, const mc_message_t *m);
/* Fills in the words of one reader's slot. */
void mc_shm_post_told(const mc_shm_poster_t *p, uint64_t word[3]);
/* Writes the newest post, if unwritten. Returns the number of events. */
uint32_t mc_shm_post_write(mc_shm_poster_t *p, mc_shm_board_t *board);

/* Consumes what is there of the post that `io` refers to; returns whether that completes it. */
bool mc_shm_post_read(mc_shm_board_t *board, mc_io_t *io);
/* The reader gives up the rest of the post. */
void mc_shm_post_leave(mc_shm_board_t *board, const mc_io_t *io);

#endif
