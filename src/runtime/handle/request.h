/* A request: an operation planned, bound and wired, to be started any number of times. */
#ifndef MC_HANDLE_REQUEST_H
#define MC_HANDLE_REQUEST_H

#include "runtime/handle/handle.h"

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
    bool active;   /* started, and nobody was told that it is complete */
    bool released; /* by its owner, and kept because transports may write to it */
    void (*release)(meshcoll_request_t *request); /* what then becomes of it */
    int status;                                   /* of the last run */
    struct mc_watch *watch;                       /* of explain; NULL: nothing is recorded */
};

/* The mesh rank that a rank of its plan is; of steps without a peer, none, -1 too. */
static inline int32_t mc_request_rank_of(const meshcoll_request_t *r, int32_t planned)
{
    return r->by_comm && planned >= 0 ? mc_mesh_rank_of(&r->mesh->order, planned) : planned;
}

/* Is what it was bound to the last time still so? It may have another workspace, or the same moved. */
static inline bool mc_request_stays(const meshcoll_request_t *r)
{
    return r->binding.scratch == r->workspace->base && r->needs <= r->workspace->bytes;
}

#endif
