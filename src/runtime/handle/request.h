/* A request: an operation that is planned, bound and wired, and can be started any number of
 * times; or a tagged message (runtime/message), which has no plan. */
#ifndef MC_HANDLE_REQUEST_H
#define MC_HANDLE_REQUEST_H

#include "runtime/handle/handle.h"

struct mc_wait;

/* Of a request in the cache of calls (call/cache.h): the call that it is bound to, and its place. */
typedef struct {
    uint64_t kind; /* of the call: mc_cache_kind; ONCE: none finds it */
    size_t count;
    const void *in; /* as the caller passed them */
    void *out;
    int64_t bytes;                     /* what it counts (lead.h) */
    meshcoll_request_t *next, *before; /* in its bucket's circle */
    size_t in_bytes, out_bytes;
    bool apart; /* in and out do not overlap */
    uint32_t bucket;
    mc_list_node_t node; /* of all */
    mc_choice_key_t key; /* of its choice; `strategy` tells only whether there was one */
} mc_cached_t;

/* What looks at a running request have seen (diagnose/waits/limits.h); times in ms. */
typedef struct {
    int64_t looked; /* at the last look; 0: none yet in this run */
    int64_t moved;  /* at its last progress */
    int64_t waited; /* for so long so far */
    uint64_t mark;  /* see mc_wait_mark */
    bool differs;   /* there was a message of another call (diagnose/differ.h) */
} mc_watched_t;

/* What kinds of requests differ in; NULL: as runs of plans do. Each kind is one constant. */
typedef struct {
    int (*start)(meshcoll_request_t *r); /* before a run starts */
    /* Progresses what is not a plan's run, at each poll, while executor.state is PENDING. */
    int (*advance)(meshcoll_request_t *r);
    int (*end)(meshcoll_request_t *r);     /* a run has ended well; before anybody learns of it */
    void (*finish)(meshcoll_request_t *r); /* a run has ended: calls mc_request_finish */
    /* What it waits for; `peer` is a rank of the mesh there. */
    void (*describe)(const meshcoll_request_t *r, struct mc_wait *wait);
    void (*release)(meshcoll_request_t *r); /* nobody waits for it any more */
    bool internal;                          /* runs for the library, and belongs to nobody */
} mc_request_kind_t;

struct meshcoll_request {
    const mc_request_kind_t *kind;
    meshcoll_t *mesh;         /* NULL once the mesh is destroyed */
    meshcoll_request_t *next; /* whose callback is due after its own */
    mc_list_node_t in_flight; /* in its job's list of running requests */
    /* In its job's list of those to advance, or in one of those that wait. What has ended at once may still be
     * in it. */
    mc_ready_t ready;
    meshcoll_request_t *next_of_all, *prev_of_all; /* in the handle's list of all requests */
    meshcoll_collective_t collective;
    int32_t root;
    mc_operands_t operands;
    mc_ranked_t choice;
    bool by_comm;    /* its plan is over the communicator's ranks: see mc_request_rank_of */
    char *text;      /* the strategy as text */
    mc_plan_t *plan; /* NULL: no elements, nothing to do */
    mc_binding_t binding;
    size_t needs; /* bytes of workspace, as bound */
    mc_executor_t executor;
    mc_workspace_t own, *workspace; /* NULL: none at present */
    mc_workspace_t *staging;        /* of the calls packed into this one; NULL: none */
    uint32_t operation;             /* operation number of the next run, the same on all ranks */
    bool persistent;                /* made by meshcoll_init; else it serves calls, see numbers.h */
    bool taken;                     /* serves a call at present */
    mc_cached_t cached;
    uint64_t used;    /* when it last served a call, in calls served */
    bool running;     /* until its owner may learn that the run has ended */
    bool active;      /* started, and its completion was not returned to the caller yet */
    bool released;    /* released by its owner, but kept because transports may still write to it */
    int64_t limit_ms; /* of a run; 0: the mesh's; negative: none */
    int status;       /* status of the last run */
    const char *why;  /* text of an error of this request alone; NULL: its errors end the mesh */
    void *
        watch; /* what a hook keeps of it, which begins with a timeline if it has a plan; NULL: nothing */
    meshcoll_callback_t callback; /* when a run has ended; NULL: none */
    void *callback_context;
    /* The exchange of counts that it waits for to be bound, or that it runs (call/counts.h). */
    struct mc_exchange *exchange;
    /* MESHCOLL_CHECK: the comparison that it waits for, or that it runs (diagnose/check.h). */
    struct mc_check *check;
    int status_of_check; /* of the last one that has ended */
    char *mismatch;      /* its sentence; `why` then */
    /* Of a persistent request: its lead, and what each run counts. */
    mc_lead_t *own_lead;
    int64_t bytes;
    mc_barrier_t *barrier; /* NULL: it is none of a lead */
    struct mc_gpu_program
        *program; /* of a persistent request on device memory, which has no plan */
    /* Of a persistent request on device memory that runs on the host (gpu/call/call.h); else NULL. */
    struct mc_stage *stage;
    mc_watched_t watched;
};

static inline meshcoll_request_t *mc_request_in_flight(const mc_list_node_t *n)
{
    return n ? (meshcoll_request_t *)((char *)n - offsetof(meshcoll_request_t, in_flight)) : NULL;
}
static inline meshcoll_request_t *mc_request_next(const meshcoll_request_t *r)
{
    return mc_request_in_flight(r->in_flight.next);
}
static inline meshcoll_request_t *mc_request_ready(const mc_list_node_t *n)
{
    return n ? (meshcoll_request_t *)((char *)n - offsetof(meshcoll_request_t, ready)) : NULL;
}

/* Returns the mesh rank of a rank in the plan; -1 stays -1: a step without a peer. */
static inline int32_t mc_request_rank_of(const meshcoll_request_t *r, int32_t planned)
{
    return r->by_comm && planned >= 0 ? mc_mesh_rank_of(&r->mesh->order, planned) : planned;
}

/* The next call binds it anew: none has as many elements. */
static inline void mc_request_unbind(meshcoll_request_t *r)
{
    r->operands = (mc_operands_t){.count = SIZE_MAX};
}

/* What its next runs do: their tags have this digest (digest.h); 0: something of the library's own. To be set
 * before it is bound. */
static inline void mc_request_sign(meshcoll_request_t *r, uint32_t digest)
{
    if (r->executor.digest != digest)
        mc_request_unbind(r); /* with other tags */
    r->executor.digest = digest;
}

/* Is the last binding still valid? The workspace may be another, or may have moved. */
static inline bool mc_request_stays(const meshcoll_request_t *r)
{
    return r->binding.scratch == r->workspace->base && r->needs <= r->workspace->bytes;
}

#endif
