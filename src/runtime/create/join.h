/*
 * A mesh of processes that all are in one live job of this one takes part in that job: it shares transports,
 * connections, threads and monitor with the meshes that are there, and has its own mesh, order, links and settings.
 * All ranks tell their jobs in the first round of the creation. One more round agrees on a context
 * (handle/family.h), or that some rank cannot: its job is just ending, or was made with other transports, threads,
 * monitor or strategies.
 */
#ifndef MC_CREATE_JOIN_H
#define MC_CREATE_JOIN_H

#include "runtime/create/rounds.h"

/* Collective. OK with *handle NULL: they are in no job, or cannot all join it. */
int mc_making_join(mc_making_t *making, meshcoll_t **handle);

#endif
