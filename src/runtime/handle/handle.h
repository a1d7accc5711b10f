/* The handle of one rank: its mesh, transports, connections, chosen strategies, and requests. */
#ifndef MC_RUNTIME_HANDLE_H
#define MC_RUNTIME_HANDLE_H

#include "mesh/link/link.h"
#include "runtime/choose/choice.h"
#include "runtime/execute/executor.h"
#include "runtime/handle/call.h"
#include "runtime/handle/hooks.h"
#include "runtime/handle/job.h"
#include "runtime/handle/lead.h"

/* The requests that serve calls (call/cache.h). CACHED: so many are kept; more where more serve calls at once. STEPS:
 * of all that are kept, up to which calls of one strategy have requests of their own; MOST_STEPS: up to which they stay
 * after having served at once. A step takes some 180 bytes with its plan (docs/benchmarks.md). LOOKS: at most so many
 * are looked at for a call. */
enum {
    MC_CACHED_REQUESTS = 128,
    MC_CACHED_STEPS = 1 << 16,
    MC_CACHED_MOST_STEPS = 1 << 18,
    MC_CACHE_BUCKETS = 256,
    MC_CACHE_LOOKS = 16
};

struct mc_cached;
typedef struct {
    struct mc_cached *bucket[MC_CACHE_BUCKETS]; /* circles, from where to look; NULL: empty */
    struct mc_cached *newest; /* made last, of those in the cache; NULL: not known */
    mc_list_t requests;
    uint32_t n;
    uint64_t n_steps; /* of their plans */
    uint64_t n_taken; /* calls they have served */
} mc_call_cache_t;

/* Of so many last calls the digest is kept. */
enum { MC_MADE_CALLS = 64 };

/* Which numbers of persistent requests are given out next (call/numbers.c). */
typedef struct {
    uint32_t half, at;        /* of the range, and in it */
    struct mc_census *census; /* NULL: the first half was not left yet */
} mc_persistent_numbers_t;

/* What its calls take (call/numbers.h), and what they leave. */
typedef struct {
    /* Operation numbers taken. Atomic, because other threads read how far this rank is. */
    _Atomic uint32_t n, n_persistent;
    mc_persistent_numbers_t persistent;
    /* By number: n_calls at that time, the number and the digest, of the last calls. Atomic as `n` is. */
    _Atomic uint64_t made[MC_MADE_CALLS];
    /* What they learn (call/adapt.h); NULL: nothing. `ordered`: sums among strategies of one order alone. `unlearned`:
     * counts down with those that are bound and learn nothing, from 2^64. */
    struct mc_adapt *adapt;
    bool ordered;
    uint64_t unlearned;
    const mc_call_t *making; /* for which connections may be made; NULL: none */
    int32_t arrived;         /* the buffer of barriers */
    size_t *own_counts;      /* see mc_args_own_counts; NULL: none yet */
} mc_calls_t;

/* The lead of its calls, and the barriers of all its leads (call/leads.h). */
typedef struct {
    mc_lead_t calls;
    mc_list_t spare;     /* agreements that run no more */
    uint32_t n_barriers; /* that are not complete */
} mc_leads_t;

/* Free workspaces, first in, first out (call/cache.h). */
typedef struct {
    mc_workspace_t *first, *last;
} mc_memory_t;

/* Its ranks in the job (family.c). */
typedef struct {
    int32_t *job_rank;    /* by rank; NULL: the same, and `order` and `machine` are the job's */
    int32_t *by_job_rank; /* its ranks, in the order of job_rank */
} mc_rank_map_t;

/* Of its tags (family.h); both are 0 for the job's first mesh. */
typedef struct {
    uint32_t number, creation;
    bool kept; /* as messages of a refused start may lie here: it is not used again */
} mc_context_t;

/* Of the ports that it shares with others (connect/connections.h). */
typedef struct {
    int32_t concurrent; /* how many sub-meshes of the split share a port; else 1 */
    size_t window;      /* in bytes: its parent's; 0: it has none */
} mc_port_share_t;

/* TAKEN: destroyed with the mesh that it was made from, but not by the caller yet. What is not OPEN any more stays until
 * nothing of it is in flight. */
typedef enum { MC_MESH_OPEN, MC_MESH_TAKEN, MC_MESH_CLOSED } mc_mesh_state_t;

/* In its job's list (jobs/). */
typedef struct {
    meshcoll_t *next;
    meshcoll_t *from; /* what it was made from, and is destroyed with; NULL: nothing */
    mc_mesh_state_t state;
} mc_mesh_entry_t;

struct meshcoll {
    int32_t rank; /* mesh rank, as everywhere below the API; the caller's is mc_comm_rank_of it */
    mc_mesh_t mesh;
    mc_order_t order;
    mc_numbering_t numbering; /* how the communicator's ranks lie on the mesh */
    const char *text;         /* of the mesh (mc_mesh_text) */
    char text_room[MC_MESH_TEXT];
    mc_links_t links;
    bool reproducible;
    int64_t timeout_ms; /* what runs longer fails; 0: no limit */

    mc_job_t *job;
    mc_mesh_entry_t entry;
    mc_context_t context;
    mc_rank_map_t ranks;
    int32_t *machine; /* by rank, the lowest rank on its machine; NULL: all are in one process */
    /* by dimension: that of most pairs, the job's; NULL for extent 1 */
    mc_transport_t *transport[MC_MAX_DIMS];
    mc_port_share_t share;
    uint64_t bytes_sent[MC_MAX_DIMS];

    const mc_hooks_t *hooks;    /* never NULL */
    struct mc_explain *explain; /* what they record of calls; NULL: nothing */

    mc_choice_t choice; /* what follows is used by each call, in few cache lines */
    mc_calls_t calls;
    mc_leads_t leads;
    mc_call_cache_t cache;
    mc_memory_t memory;
    mc_list_t requests;           /* all of them */
    struct mc_group *group;       /* the calls being collected; NULL: no group was opened yet */
    uint32_t n_restricted;        /* an open group, and requests whose callbacks are not over */
    mc_hook_t hook;               /* run by calls that wait; function is NULL: none */
    struct mc_messages *messages; /* tagged messages; NULL: none so far */
    struct mc_gpu *gpu; /* the device's (device.h); NULL: no call on device memory was made */
};

/* Is it `from`, or made from it, or from what was made from it? */
static inline bool mc_mesh_is_of(const meshcoll_t *h, const meshcoll_t *from)
{
    while (h && h != from)
        h = h->entry.from;
    return h;
}

static inline int32_t mc_job_rank(const meshcoll_t *h, int32_t rank)
{
    return h->ranks.job_rank ? h->ranks.job_rank[rank] : rank;
}
/* Its ranks are these of the job, whose transports it uses: of each dimension the outermost that joins neighbours along
 * it. Takes over `job_rank`. ERR_NO_MEMORY. */
int mc_ranks_set(meshcoll_t *h, int32_t *job_rank);
/* Returns its rank of a rank of the job; -1: it is no member. */
int32_t mc_rank_of_job_rank(const meshcoll_t *h, int32_t job_rank);

#endif
