/* A run of a plan: planned, bound and wired, so that it can be started any number of times. */
#ifndef MC_HANDLE_RUN_H
#define MC_HANDLE_RUN_H

#include "runtime/handle/digest.h"
#include "runtime/handle/request.h"

typedef struct mc_run {
    meshcoll_request_t head; /* first */
    int32_t root;
    mc_operands_t operands;
    mc_ranked_t choice;
    bool by_comm;    /* its plan is over the communicator's ranks: see mc_run_rank_of */
    char *text;      /* the strategy as text */
    mc_plan_t *plan; /* NULL: no elements, nothing to do */
    mc_binding_t binding;
    size_t needs; /* bytes of workspace, as bound */
    mc_executor_t executor;
    mc_flush_t flush;
    mc_workspace_t own, *workspace; /* NULL: none at present */
    mc_workspace_t *staging;        /* of the calls packed into this one; NULL: none */
    /* What a hook keeps of it, which begins with a timeline; NULL: nothing. */
    void *watch;
    char *mismatch;               /* `why` of a call that ranks have made differently */
    struct mc_exchange *exchange; /* of counts, that it waits for to be bound; NULL: none */
    void *task; /* what it does for the library: its kind's; NULL: it serves a call */
} mc_run_t;

/* Made by the caller (meshcoll_init). */
typedef struct {
    mc_run_t run;    /* first */
    mc_lead_t *lead; /* its own; NULL: it is enqueued in streams, and not started */
    int64_t bytes;   /* that each run counts */
    uint64_t left;   /* starts until its learner is asked; from 2^64 - 1: it has none */
} mc_persistent_t;

/* NULL: it is none. */
static inline mc_run_t *mc_run_of(const meshcoll_request_t *r)
{
    return r->kind->is_run ? (mc_run_t *)r : NULL;
}
static inline mc_persistent_t *mc_persistent_of(const meshcoll_request_t *r)
{
    return r->persistent ? (mc_persistent_t *)r : NULL;
}

/* Returns the mesh rank of a rank in the plan; -1 stays -1: a step without a peer. */
static inline int32_t mc_run_rank_of(const mc_run_t *r, int32_t planned)
{
    return r->by_comm && planned >= 0 ? mc_mesh_rank_of(&r->head.mesh->order, planned) : planned;
}

/* The next call binds it anew: none has as many elements. */
static inline void mc_run_unbind(mc_run_t *r)
{
    r->operands = (mc_operands_t){.count = SIZE_MAX};
}

/* What its next runs do (digest.h; 0: something of the library's own), and by which of the candidates of its calls: their
 * tags have both. To be set before it is bound. */
static inline void mc_run_sign(mc_run_t *r, uint32_t digest, int32_t candidate)
{
    const uint32_t tag = mc_digest_by(digest, candidate);
    if (r->executor.tag_digest != tag)
        mc_run_unbind(r); /* with other tags */
    r->executor.digest = digest;
    r->executor.tag_digest = tag;
}

/* Is the last binding still valid? The workspace may be another, or may have moved. */
static inline bool mc_run_stays(const mc_run_t *r)
{
    return r->binding.scratch == r->workspace->base && r->needs <= r->workspace->bytes;
}

#endif
