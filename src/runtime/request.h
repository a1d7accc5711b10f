/* A request: an operation planned, bound and wired, to be started as often as one likes. */
#ifndef MC_RUNTIME_REQUEST_H
#define MC_RUNTIME_REQUEST_H

#include "runtime/handle.h"

struct meshcoll_request {
    meshcoll_t *mesh;         /* NULL once that is destroyed, where the request was in a list */
    meshcoll_request_t *next; /* in the handle's list of what runs, or of what failed */
    meshcoll_collective_t collective;
    int32_t root;
    mc_operands_t operands;
    mc_ranked_t choice;
    char *text;      /* of the strategy */
    mc_plan_t *plan; /* NULL where there is nothing to do: no elements */
    mc_binding_t binding;
    mc_executor_t executor;
    mc_workspace_t own, *workspace;
    bool running;
    bool released;          /* by its owner, and kept because transports may write to it */
    int status;             /* of the last run */
    struct mc_watch *watch; /* of explain; NULL: nothing is recorded */
};

/* The arguments of a call, checked: *args with defaults for what is not given, and the root as the
 * mesh numbers it. */
int mc_args_check(const meshcoll_t *h, const meshcoll_args_t *given, meshcoll_args_t *args);

/* `workspace` NULL: the request's own. */
int mc_request_create(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                      mc_workspace_t *workspace, meshcoll_request_t **request);
/* Other operands for the same collective, root and strategy. */
int mc_request_bind(meshcoll_request_t *r, const mc_operands_t *operands);

/* After a run, complete or failed; it is in no list. */
void mc_request_ended(meshcoll_request_t *r);

/* Records its runs from the next start on, into a timeline of its plan; NULL: no more. */
void mc_request_record(meshcoll_request_t *r, mc_timeline_t *timeline);

/* Checks, chooses, and runs to the end, with a request from the handle's cache. */
int mc_run(meshcoll_t *h, const meshcoll_args_t *given);

/* Whatever is forced for allreduce, a barrier is the planner's cheapest sum of one element. */
int mc_run_barrier(meshcoll_t *h);

#endif
