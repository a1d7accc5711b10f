/*
 * Greeting: both ends of a new connection find out that it works in both directions before the
 * first operation over it starts. Some transports need progress at both ends to connect (UCX over
 * TCP, where both sides may connect at once), and a rank that has finished its part may not return
 * to the library for long, while it is in MPI or in a compute kernel. In shared memory messages would
 * pass without; there it is for what else a greeting does: the ends compare the calls for which they
 * connect, if these have the same number, so that ranks that disagree about a call fail before any
 * of its data moves.
 *
 * Nobody waits here: the greetings of a handle are progressed like its running requests, and the
 * runs that need a connection are pending until it is greeted (executor.h).
 */
#ifndef MC_RUNTIME_GREET_H
#define MC_RUNTIME_GREET_H

#include "runtime/handle/handle.h"

/* Begins to greet a new connection; its peer does so when it connects. peer->greeted is set when
 * that is complete. ERR_TRANSPORT or ERR_NO_MEMORY. */
int mc_greet(meshcoll_t *h, mc_peer_t *peer);
/* Are greetings in progress for calls of this mesh? */
bool mc_greet_runs_for(const meshcoll_t *h);
/* Before the handle is closed, when all its ranks are here: completes the greetings of connections
 * that no run has used, and the barriers of leads, for a limited time, as a peer that was refused does
 * not answer. */
void mc_greet_finish(mc_job_t *job);
/* Frees what is left of the greetings, once the transports are closed. */
void mc_greet_free(mc_job_t *job);

#endif
