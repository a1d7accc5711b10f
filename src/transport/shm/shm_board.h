/*
 * A message to several ranks is written once, to a board in its sender's segment, and read from there by all of them. It
 * goes there only where there is room for all of it, so that nobody ever waits for a reader.
 */
#ifndef MC_TRANSPORT_SHM_BOARD_H
#define MC_TRANSPORT_SHM_BOARD_H

#include "transport/shm/shm_memory.h"
#include "transport/transport.h"

/* A sender's side of its board. */
typedef struct {
    size_t at[MC_SHM_POSTS]; /* of the posts in use: where they begin */
    uint32_t first, n;     /* posts in use, the oldest first; numbers go on, modulo MC_SHM_POSTS */
    size_t end;            /* of the newest */
    uint32_t readers;      /* of the newest, which is not written yet; 0: it is */
    uint32_t more;         /* its sends that are still to come */
    mc_message_t message;  /* the newest */
    mc_io_queue_t waiting; /* sends that end when it is written */
} mc_shm_poster_t;

/* Has the message a place on the board? The one of the sends before, which it shares, or a new one. */
bool mc_shm_post(mc_shm_poster_t *p, mc_shm_board_t *board, const mc_message_t *m);
/* One more reader; what its slot says. */
void mc_shm_post_told(const mc_shm_poster_t *p, uint64_t word[3]);
/* Writes the newest, if there is one that is not written; how many sends that ended. */
uint32_t mc_shm_post_write(mc_shm_poster_t *p, mc_shm_board_t *board);

/* Takes what is there of the post that `io` was told of; whether it was the rest. */
bool mc_shm_post_read(mc_shm_board_t *board, mc_io_t *io);
/* Its reader does without what is left. */
void mc_shm_post_leave(mc_shm_board_t *board, const mc_io_t *io);

#endif
