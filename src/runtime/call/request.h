/* Making, binding, starting and completing requests. The caller holds the mesh's lock. */
#ifndef MC_REQUEST_REQUEST_H
#define MC_REQUEST_REQUEST_H

#include "runtime/handle/request.h"
#include "runtime/progress/callback.h"

mc_operands_t mc_operands_of(const meshcoll_args_t *a);

/* Makes a request with its strategy, but neither planned nor wired. */
int mc_request_unplanned(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                         meshcoll_request_t **request);
/* Plans and wires one for a call of at least one element. */
int mc_request_plan(meshcoll_request_t *r, const meshcoll_args_t *args);
/* Makes a request that is planned and wired, but not bound. */
int mc_request_create(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                      meshcoll_request_t **request);
/* Binds operands for its collective, root and strategy, in its present workspace; does nothing
 * where the last binding still holds. */
int mc_request_bind(meshcoll_request_t *r, const mc_operands_t *operands);
/* Binds the same operands in other buffers, which overlap as the last ones do, in its present
 * workspace, which it has if it needs any. Not for a call with tables of counts or a scaled sum. */
int mc_request_move(meshcoll_request_t *r, const void *in, void *out);
/* Frees a request that has nothing in flight. */
void mc_request_destroy(meshcoll_request_t *r);

/* Adds it to, and removes it from, the handle's list of all requests. */
void mc_request_enlist(meshcoll_t *h, meshcoll_request_t *r);
void mc_request_unlist(meshcoll_request_t *r);

int mc_request_start(meshcoll_request_t *r);
/* Is it running for this thread? In its own callback it is not. */
static inline bool mc_runs(meshcoll_request_t *r)
{
    return r->running && !((!r->mesh || r->mesh->n_restricted > 0) && mc_callback_leave(r));
}
/* Waits until it has ended; returns its status. */
int mc_request_await(meshcoll_request_t *r);
/* Returns the status of an ended request to its owner, who loses it unless it is persistent. */
int mc_request_tell(meshcoll_request_t *r);
/* Releases a request for its owner: at once, or when it has ended. */
void mc_request_drop(meshcoll_request_t *r);

/* Records its runs into a timeline of its plan, from the next start on; NULL: stops. */
void mc_request_record(meshcoll_request_t *r, mc_timeline_t *timeline);

#endif
