/* How a rank finds rank 0: names and ports to addresses, listening on one port, and trying them all. */
#ifndef MC_BOOTSTRAP_SEEK_H
#define MC_BOOTSTRAP_SEEK_H

#include "job/bootstrap/environment.h"

/* Rank 0 listens on the first port of the job that it can: on all its addresses, or on the job's only.
 * ERR_TRANSPORT. */
int mc_seek_listen(const mc_environment_t *env, int *listener);
/* "10.0.0.5:30500, [fd00::5]:30500": where others may reach a listener. */
void mc_seek_where(int listener, mc_text_t *text);

/* A rank that has registered. */
typedef struct {
    int fd; /* the connection to rank 0 */
    int listener;
    mc_answer_t answer;
    struct sockaddr_storage to; /* rank 0's address, as this rank has reached it */
} mc_seek_t;

/* Registers with rank 0. ERR_TRANSPORT says what became of the last attempt. */
int mc_seek_rank0(const mc_environment_t *env, const mc_self_t *self, double deadline,
                  mc_seek_t *seek);
/* The connection to the parent, which may be that to rank 0. Ends the latter otherwise; also on
 * failure. */
int mc_seek_parent(const mc_self_t *self, mc_seek_t *seek, double deadline, int *fd);

#endif
