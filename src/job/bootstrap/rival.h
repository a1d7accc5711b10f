/* Two processes that are rank 0 of what looks like one job: without a secret, ranks of both would form meshes with
 * each other. While rank 0 waits for the others it holds a name, an abstract socket of its machine. */
#ifndef MC_BOOTSTRAP_RIVAL_H
#define MC_BOOTSTRAP_RIVAL_H

#include "job/bootstrap/environment.h"

/* *fd: the name, to be polled and closed; -1: there is none, as there is a secret. ERR_TRANSPORT names the other
 * process of this user that has it, and that now hears of this one. */
int mc_rival_claim(const mc_environment_t *env, int *fd);
/* Somebody has come to `fd`. ERR_TRANSPORT: another rank 0. */
int mc_rival_hear(int fd);

#endif
