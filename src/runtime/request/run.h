/* Making, binding and running plans. The caller holds the mesh's lock. */
#ifndef MC_REQUEST_RUN_H
#define MC_REQUEST_RUN_H

#include "runtime/handle/run.h"

mc_operands_t mc_operands_of(const meshcoll_args_t *a);

/* Makes a run for a call that is chosen, with its number, but neither planned nor wired. */
int mc_run_make(meshcoll_t *h, const mc_request_kind_t *kind, const mc_call_t *call,
                mc_run_t **run);
/* Gives one that is not planned another strategy; the caller keeps the text of the last one. */
int mc_run_choose(mc_run_t *r, const mc_ranked_t *choice);
/* A run of the library's own, which is made once and runs many times. */
typedef struct {
    mc_run_t run; /* first */
    mc_list_node_t spare;
} mc_own_run_t;
/* Takes the first of `spare`, or makes one: an allreduce by MAX of `count` int64, which lie `at` bytes behind the begin of
 * the request. It has memory of its own, so that requests of calls keep theirs. Its strategy depends on the mesh and its
 * links alone, and so is the same on all ranks. */
int mc_own_run_take(meshcoll_t *h, const mc_list_t *spare, const mc_request_kind_t *kind, size_t at,
                    size_t count, mc_own_run_t **own);
/* Plans and wires it for a call of at least one element. */
int mc_run_plan(mc_run_t *r, const mc_call_t *call);
/* Binds operands for its collective, root and strategy, in its present workspace; does nothing
 * where the last binding still holds. */
int mc_run_bind(mc_run_t *r, const mc_operands_t *operands);
/* Binds the same operands in other buffers, which overlap as the last ones do, in its present
 * workspace, which it has if it needs any. Not for a call with tables of counts or a scaled sum. */
int mc_run_move(mc_run_t *r, const void *in, void *out);

/* Of kinds of requests that are runs. */
#define MC_RUN \
    .is_run = true, .start = mc_run_begin, .advance = mc_run_advance, .cancel = mc_run_cancel
int mc_run_begin(meshcoll_request_t *r);
int mc_run_advance(meshcoll_request_t *r, uint32_t events);
void mc_run_cancel(meshcoll_request_t *r, int status);
/* Frees a run that has nothing in flight. */
void mc_run_destroy(meshcoll_request_t *r);

/* Records the runs of a request into a timeline of its plan, from the next start on; NULL: stops. */
void mc_run_record(meshcoll_request_t *r, mc_timeline_t *timeline);

#endif
