/* Starting, waiting for and releasing requests of any kind. The caller holds the mesh's lock. */
#ifndef MC_REQUEST_REQUEST_H
#define MC_REQUEST_REQUEST_H

#include "runtime/handle/request.h"
#include "runtime/progress/callback.h"

/* Adds it to its mesh's list of all requests. */
void mc_request_enlist(meshcoll_t *h, meshcoll_request_t *r);
/* Starts a run. Where it fails, the request is still the caller's; a failure that is not the request's alone ends the
 * mesh. One that is released may be gone. */
int mc_request_start(meshcoll_request_t *r);
/* Is it running for this thread? In its own callback it is not. */
static inline bool mc_runs(meshcoll_request_t *r)
{
    return r->running && !((!r->mesh || r->mesh->n_restricted > 0) && mc_callback_leave(r));
}
/* Waits until it has ended; returns its status. */
int mc_request_await(meshcoll_request_t *r);
/* Waits until it has ended, and returns its status to its owner, who loses it unless it is persistent. */
int mc_request_complete(meshcoll_request_t *r);
/* Releases a request for its owner: at once, or when it has ended. */
void mc_request_drop(meshcoll_request_t *r);

#endif
