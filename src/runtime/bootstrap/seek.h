/* How a rank finds rank 0: names and ports to addresses, listening on one of them, and trying them all. */
#ifndef MC_BOOTSTRAP_SEEK_H
#define MC_BOOTSTRAP_SEEK_H

#include "runtime/handshake/handshake.h"

/* Rank 0 listens on the first address and port of the job that it can. ERR_TRANSPORT. */
int mc_seek_listen(const mc_job_t *job, int *listener);

/* A rank that has registered. */
typedef struct {
    int fd; /* the connection to rank 0 */
    int listener;
    mc_answer_t answer;
    struct sockaddr_storage own; /* this end's address */
} mc_seek_t;

/* Registers with rank 0. ERR_TRANSPORT says what became of the last attempt. */
int mc_seek_rank0(const mc_self_t *self, double deadline, mc_seek_t *seek);
/* The connection to the parent, which may be that to rank 0. Ends the latter otherwise; also on
 * failure. */
int mc_seek_parent(const mc_self_t *self, mc_seek_t *seek, double deadline, int *fd);

#endif
