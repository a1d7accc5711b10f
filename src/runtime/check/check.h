/*
 * MESHCOLL_CHECK=1: before any data of a call moves, all ranks gather its fingerprints and compare
 * them, by an allgather with an operation number of its own. The call's run is held until that has
 * ended (executor.h), so that calls that do not wait still do not. If the ranks disagree, the call
 * fails on all of them with the same sentence, and the mesh runs on. A rank whose call is refused
 * takes part too, so that the others learn why.
 */
#ifndef MC_CALL_CHECK_H
#define MC_CALL_CHECK_H

#include "runtime/handle/fingerprint.h"
#include "runtime/handle/request.h"
#include "runtime/request/numbers.h"

/* Holds a request until all ranks have compared `f`. `number` is from mc_next_call. Collective. If
 * this fails the mesh has failed. */
int mc_check_begin(meshcoll_request_t *r, const mc_fingerprint_t *f, uint32_t number);
/* In what the calls of ranks differ: one was refused; the number of calls in a group, so that the mesh
 * fails, as operation numbers differ from there on; something else. */
typedef enum { MC_DIFFER_REFUSED, MC_DIFFER_NUMBERS, MC_DIFFER_ELSE } mc_differ_t;
/* Compares and waits; OK, or ERR_MISMATCH with the sentence. */
int mc_check_wait(meshcoll_t *h, const mc_fingerprint_t *f, uint32_t number, mc_differ_t *differ);

/* A call that was refused; `waits`: until the others know. */
typedef struct {
    mc_numbers_t number;
    bool persistent, waits;
} mc_refused_t;
/* To be called when a call was refused with `status`, which it returns with its text. The other ranks are
 * told: by the comparison, or else they fail while they wait in that call. */
int mc_call_refused(meshcoll_t *h, const mc_refused_t *refused, int status);

#endif
