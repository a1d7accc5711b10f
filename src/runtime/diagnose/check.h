/*
 * MESHCOLL_CHECK=1: before any data of a call moves, all ranks gather its fingerprints and compare
 * them, by an allgather with an operation number of its own. The call's run is held until that has
 * ended (executor.h), so that calls that do not wait still do not. If the ranks disagree, the call
 * fails on all of them with the same sentence, and the mesh runs on. A rank whose call is refused
 * takes part too, so that the others learn why.
 */
#ifndef MC_DIAGNOSE_CHECK_H
#define MC_DIAGNOSE_CHECK_H

#include "runtime/call/cache.h"
#include "runtime/call/leads.h"
#include "runtime/diagnose/fingerprint.h"
#include "runtime/handle/run.h"

/* The hooks of a mesh whose calls are compared (hooks.h). Collective. If this fails otherwise than by ERR_MISMATCH, the
 * mesh has failed. */
int mc_check_call(meshcoll_t *h, const mc_call_t *call, mc_run_t *r);
int mc_check_refused(meshcoll_t *h, const mc_call_t *call, int status);

/* Prepares an allgather of the library's own, of `bytes` bytes of each rank, a multiple of 8; `name` stands in
 * MESHCOLL_EXPLAIN. `kind` and `task` as of mc_cache_prepare. */
typedef struct {
    const void *own;
    void *all;
    size_t bytes;
    const char *name;
    uint32_t number;
} mc_gathered_t;
int mc_check_gather(meshcoll_t *h, const mc_gathered_t *what, const mc_request_kind_t *kind,
                    void *task, mc_run_t **run);

/* In what the calls of ranks differ: one was refused; the number of calls in a group, so that the mesh
 * fails, as operation numbers differ from there on; something else. */
typedef enum { MC_DIFFER_REFUSED, MC_DIFFER_NUMBERS, MC_DIFFER_ELSE } mc_differ_t;
/* Compares and waits; OK, or ERR_MISMATCH with the sentence. */
int mc_check_wait(meshcoll_t *h, const mc_fingerprint_t *f, uint32_t number, mc_differ_t *differ);

/* Of groups (hooks.h). */
int mc_check_group(meshcoll_t *h, uint32_t number, uint32_t n_made, const char *why);

#endif
