/* A request: an operation planned, bound and wired, to be started as often as one likes. */
#ifndef MC_RUNTIME_REQUEST_H
#define MC_RUNTIME_REQUEST_H

#include "runtime/handle.h"

/* The call a request has last served, to be known when it is made again. */
typedef struct {
    meshcoll_args_t args; /* as they were given */
    bool is_barrier;
    mc_memory_t *choice; /* NULL: it cannot be known, or the request is bound to another since */
    uint64_t forgotten;  /* the choices' count then */
} mc_known_t;

struct meshcoll_request {
    meshcoll_t *mesh;         /* NULL once that is destroyed */
    meshcoll_request_t *next; /* in the handle's list of what runs, or failed */
    meshcoll_request_t *next_of_all, *prev_of_all; /* in the handle's list of all */
    meshcoll_collective_t collective;
    int32_t root;
    mc_operands_t operands;
    mc_ranked_t choice;
    bool by_comm;    /* its plan is of the communicator's ranks, not the mesh's: see below */
    char *text;      /* of the strategy */
    mc_plan_t *plan; /* NULL where there is nothing to do: no elements */
    mc_binding_t binding;
    size_t needs; /* bytes of workspace, as bound */
    mc_executor_t executor;
    mc_workspace_t own, *workspace; /* NULL: none at the moment */
    mc_workspace_t *staging;        /* of calls packed into this one; NULL: none */
    uint32_t operation;             /* the next run's number, the same on all ranks */
    bool persistent;                /* of meshcoll_init; else it serves calls, see calls.h */
    bool cached, taken;             /* one of the handle's; it serves a call now */
    mc_known_t known;
    uint64_t used; /* when last, in calls served */
    bool running;
    bool active;            /* started, and nobody was told that it is complete */
    bool released;          /* by its owner, and kept because transports may write to it */
    int status;             /* of the last run */
    struct mc_watch *watch; /* of explain; NULL: nothing is recorded */
};

/* The arguments of a call, checked: *args with defaults for what is not given, and the root as the
 * mesh numbers it. */
int mc_args_check(const meshcoll_t *h, const meshcoll_args_t *given, meshcoll_args_t *args);
mc_operands_t mc_operands_of(const meshcoll_args_t *a);

/* The numbering that a call's sums must follow the aligned tree over, to be reproducible; NULL: any
 * will do. Arguments are checked. */
const mc_numbering_t *mc_args_aligned(const meshcoll_t *h, const meshcoll_args_t *args);
/* Where no strategy of the mesh's ranks does that, or keeps the order of an operation that does not
 * commute, a plan is made as if the mesh's ranks stood in the
 * communicator's order, and its ranks are translated when it is wired. */
bool mc_plans_by_comm(const meshcoll_t *h, const meshcoll_args_t *args);

/* The mesh rank that a rank of its plan is; of steps without a peer, none, -1 too. */
static inline int32_t mc_request_rank_of(const meshcoll_request_t *r, int32_t planned)
{
    return r->by_comm && planned >= 0 ? mc_mesh_rank_of(&r->mesh->order, planned) : planned;
}

/* Planned and wired, not bound. */
int mc_request_create(meshcoll_t *h, const meshcoll_args_t *args, const mc_ranked_t *choice,
                      meshcoll_request_t **request);
/* Is what it was bound to the last time still so? It may have another workspace, or the same moved. */
static inline bool mc_request_stays(const meshcoll_request_t *r)
{
    return r->binding.scratch == r->workspace->base && r->needs <= r->workspace->bytes;
}
/* Operands for its collective, root and strategy, in the workspace it has now. */
int mc_request_bind(meshcoll_request_t *r, const mc_operands_t *operands);
/* A persistent one. */
int mc_request_init(meshcoll_t *h, const meshcoll_args_t *given, bool is_barrier,
                    meshcoll_request_t **request);
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
