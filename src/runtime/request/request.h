/* Making, binding, starting and ending requests. */
#ifndef MC_REQUEST_REQUEST_H
#define MC_REQUEST_REQUEST_H

#include "runtime/handle/request.h"

mc_operands_t mc_operands_of(const meshcoll_args_t *a);

/* Planned and wired, not bound. */
int mc_request_create(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                      meshcoll_request_t **request);
/* Operands for its collective, root and strategy, in the workspace it has now. */
int mc_request_bind(meshcoll_request_t *r, const mc_operands_t *operands);
/* Nothing of it is under way. */
void mc_request_destroy(meshcoll_request_t *r);

int mc_request_start(meshcoll_request_t *r);
/* Until it has ended; its status. */
int mc_request_await(meshcoll_request_t *r);
/* Tells its owner that it has ended, who loses it unless it is persistent; its status. */
int mc_request_tell(meshcoll_request_t *r);
/* Its owner wants it no more: at once, or when it has ended. */
void mc_request_drop(meshcoll_request_t *r);

/* After a run, complete or failed; it is in no list. */
void mc_request_ended(meshcoll_request_t *r);

/* Records its runs from the next start on, into a timeline of its plan; NULL: no more. */
void mc_request_record(meshcoll_request_t *r, mc_timeline_t *timeline);

#endif
