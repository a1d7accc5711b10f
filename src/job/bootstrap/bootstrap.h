/*
 * An out-of-band allgather over TCP for the ranks of a job. Ranks register with rank 0, which arranges them as a
 * tree in the order in which they come: each keeps a connection to its parent and at most MC_FANOUT to children. An
 * allgather collects up the tree and distributes down it: O(log ranks) steps, and no rank holds more than MC_FANOUT + 1
 * connections. A rank that fails, or a time limit, ends it on all ranks with the same error.
 */
#ifndef MC_BOOTSTRAP_BOOTSTRAP_H
#define MC_BOOTSTRAP_BOOTSTRAP_H

#include "job/environment/environment.h"
#include "job/network/wire.h"

typedef struct mc_bootstrap mc_bootstrap_t;

/* Joins the other ranks. ERR_TRANSPORT names those that are missing, or why this rank was refused.
 * Collective. */
int mc_bootstrap_open(const mc_environment_t *env, mc_bootstrap_t **bootstrap);
/* The same for the job of the environment. Also ERR_INVALID_ARG: see mc_environment_read. */
int mc_bootstrap_open_env(int (*check)(void), mc_bootstrap_t **bootstrap);
/* Takes a void *, as it frees the context of a mesh. */
void mc_bootstrap_close(void *bootstrap);

/* The allgather; the bootstrap is its context. */
meshcoll_oob_t mc_bootstrap_oob(mc_bootstrap_t *bootstrap);
/* This end of a connection to another rank, one of another host if there is any; NULL: there is none. */
const mc_endpoint_t *mc_bootstrap_reached(mc_bootstrap_t *bootstrap);
/* The mesh is made: from now on an allgather is the barrier of its destruction, and waits for these seconds; 0: for as
 * long as all ranks live. */
void mc_bootstrap_made(mc_bootstrap_t *bootstrap, double seconds);
/* The sentence of the failure that ended it; NULL: it works. */
const char *mc_bootstrap_failure(const mc_bootstrap_t *bootstrap);

#endif
