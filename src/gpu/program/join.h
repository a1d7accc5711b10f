/*
 * Which messages of a program are moved together, in one pass over the data: a receive, or
 * receive-reduces into the same place, and then a send of what they yield; and sends of the same
 * bytes to several peers.
 *
 * A rank awaits all of them before it moves any, and tells of none before all are moved. That
 * cannot hang, for this reason. Let W messages in flight be enough for the plan in program order,
 * as the verifier proves for W = MC_PROGRAM_WINDOW: no step waits for itself, along edges from a
 * step to the next one of its rank, from send k of a lane to receive k, and from receive k to send
 * k + W. Joining, with K slots, replaces the last kind by receive k to send k + K, and makes one
 * step of several. A circle of joined steps would enter one of them at a message e and leave it at
 * a message x that comes before e; else it was a circle before.
 *
 * - Receives come first. So e is a send, or x and e are receives: e is entered, or x is left, by an
 *   edge from receive k to send k + K.
 * - A step has at most one message of each lane. So receive k + 1 comes after the whole step of
 *   receive k, and send k + K - 1 before the whole step of send k + K. With K = W + 2 the edge from
 *   receive k + 1 to send k + 1 + W = k + K - 1, which the plan had before, goes from behind the one
 *   to before the other. It takes the place of the edge, and what is left is a circle of the plan.
 *
 * The next passes and calls only add edges from earlier to later ones, as each pass receives all
 * that it sends.
 */
#ifndef MC_DEVICE_JOIN_H
#define MC_DEVICE_JOIN_H

#include "gpu/program/format.h"
#include "runtime/bind/binding.h"

/* Sets JOIN and DROP in the runs of a program of this binding. ERR_NO_MEMORY. */
int mc_device_join(const mc_binding_t *binding, mc_device_run_t *run, uint32_t n);

/* Are the messages that are joined with the one that begins at run *at as they must be? Else the
 * sentence, of run *at. NULL: they are, and the next step begins at *at. Of n runs that are right
 * otherwise. */
const char *mc_device_join_fault(const mc_device_run_t *run, uint32_t n, uint32_t *at);

#endif
