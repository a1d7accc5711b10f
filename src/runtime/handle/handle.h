/* The handle of one rank: its mesh, transports, connections, chosen strategies, and requests. */
#ifndef MC_RUNTIME_HANDLE_H
#define MC_RUNTIME_HANDLE_H

#include "mesh/link/link.h"
#include "runtime/choose/choice.h"
#include "runtime/execute/executor.h"
#include "runtime/handle/family.h"
#include "runtime/handle/lead.h"
#include "runtime/place/boxes.h"
#include "runtime/place/settings.h"
#include "transport/shm/shm.h"

#include <stdatomic.h>

/* CACHED: as many as choices are remembered. STEPS: of all that are cached, up to which calls of one strategy
 * have requests of their own; a step takes some 180 bytes with its plan (docs/bench.md). */
enum { MC_CACHED_REQUESTS = MC_REMEMBERED, MC_KNOWN_CALLS = 256, MC_CACHED_STEPS = 1 << 16 };

/* Asks a rank of the root mesh, by its mesh rank, what it waits for. 0; else there is no answer. */
struct mc_waits;
typedef struct {
    int (*rank)(void *context, int32_t rank, struct mc_waits *answer);
    void *context;
} mc_ask_t;

struct meshcoll {
    int32_t rank; /* mesh rank, as everywhere below the API; the caller's is mc_comm_rank_of it */
    mc_mesh_t mesh;
    mc_order_t order;
    char text[MC_MESH_TEXT];
    mc_links_t links;
    bool reproducible;
    bool checks; /* MESHCOLL_CHECK: all ranks compare each call (call/check.h) */
    const struct mc_asking
        *asking;              /* the call being made, for greetings (fingerprint.h); else NULL */
    mc_numbering_t numbering; /* how the communicator's ranks lie on the mesh */

    meshcoll_t *root;       /* of the family (family.h); itself where it was made from nothing */
    meshcoll_t *parent;     /* what it was made from; NULL: nothing */
    meshcoll_t *sibling;    /* next of those made from the parent, or of those that linger */
    meshcoll_t *children;   /* made from this one; the newest first */
    meshcoll_t *lingering;  /* of a root: destroyed, but something of them is in flight */
    mc_family_t *family;    /* of a root: NULL: nothing was made from it yet */
    uint32_t context;       /* in tags; a root's is 0 */
    uint32_t creation;      /* its number; a root's is 0 */
    int32_t *root_rank;     /* by rank: its rank in the root; NULL: the same */
    int32_t *by_root;       /* its ranks, in the order of root_rank */
    mc_settings_t settings; /* only of a root */

    /* Down to misses_peer only of a root, but for what is said to be each one's. */

    /* allgather is NULL where all ranks are in one process */
    meshcoll_oob_t oob;
    void (*free_context)(void *context);

    /* each one's: by rank, the lowest rank on its machine; NULL: all are in one process */
    int32_t *machine;
    char tls[MC_MAX_DIMS][MC_TLS_TEXT];
    mc_shm_access_t access;
    /* by dimension; NULL for extent 1; of others than the root: that of most pairs, the root's */
    mc_transport_t *transport[MC_MAX_DIMS];
    mc_transport_t *polled[MC_MAX_DIMS]; /* those with connections */
    int32_t n_polled;
    /* By rank as gathered, `address_stride` bytes apart; but for sub-meshes, then a byte for each rank. */
    char *addresses;
    size_t address_stride;
    int32_t concurrent; /* each one's: how many sub-meshes of the split share a port; else 1 */
    size_t window;      /* each one's, in bytes: its parent's; of a root 0 */
    mc_peer_t **peer;   /* ascending by rank */
    uint32_t n_peers, peer_capacity;
    struct mc_greeter *greeter;       /* of new connections; NULL: none needed it yet */
    uint64_t bytes_sent[MC_MAX_DIMS]; /* each one's */

    bool oversubscribed; /* each one's: more ranks than cores */
    bool pipelined;      /* the request started last has several segments */

    int broken;      /* status of the first run that failed, after which none starts; else 0 */
    double broke_at; /* when it failed (mc_now) */
    char why[400];   /* its error text */
    struct mc_monitor *monitor; /* NULL: all ranks are in one process */
    const _Atomic bool *alarm;  /* of its board: the mesh failed somewhere */
    int64_t check_at;           /* ms; time of the next check that peers are alive (failure.h) */
    bool misses_peer;           /* the last look found a peer gone */

    /* What runs longer fails; 0: no limit. And what this rank waits for (runtime/waits). */
    int64_t timeout_ms;
    struct mc_board *board; /* the root mesh's */
    struct mc_serve *serve; /* of a root mesh: tells meshcoll status; NULL: does not */
    mc_ask_t ask;           /* of a root mesh; rank is NULL: other ranks cannot be asked */

    mc_choice_t choice; /* from its end on: what each call uses, in few cache lines */
    /* Operation numbers taken: see numbers.h. Atomic, because other threads read how far this rank is. */
    _Atomic uint32_t n_calls, n_persistent;
    mc_lead_t lead; /* of its calls */
    /* Called where a count leaves less than nothing of an epoch; `r` runs the call (request/leads.h). */
    void (*pay)(meshcoll_t *mesh, mc_lead_t *lead, int64_t bytes, meshcoll_request_t *r);
    uint32_t n_barriers;                        /* of leads, that are not complete */
    meshcoll_request_t *spare_barrier;          /* of leads, that run no more */
    meshcoll_request_t *all;                    /* list of all requests */
    meshcoll_request_t *running;                /* of a root: the family's, the oldest first */
    void (*ended)(meshcoll_request_t *request); /* called for a request that has just left it */
    meshcoll_t *next_busy;              /* in the thread's list of handles with running requests */
    uint64_t n_taken;                   /* calls they have served */
    mc_workspace_t *spare, *last_spare; /* free workspaces, a queue */
    struct mc_threads *threads;         /* the root's; NULL: one thread at a time, no lock */
    struct mc_group *group;       /* the calls being collected; NULL: no group was opened yet */
    bool group_open;              /* a group is open */
    uint32_t n_special;           /* an open group, and requests whose callbacks are not over */
    mc_hook_t hook;               /* run by calls that wait; function is NULL: none */
    int32_t arrived;              /* the buffer of barriers */
    size_t *own_counts;           /* see mc_args_own_counts; NULL: none yet */
    struct mc_messages *messages; /* tagged messages; NULL: none so far */
    struct mc_talk *talk;         /* of a root: where headers arrive; NULL: nobody listens yet */
    uint32_t (*move_messages)(meshcoll_t *root); /* of a root: after each poll; NULL: none so far */
    struct mc_explain *explain;                  /* records for meshcoll_explain; NULL: none */
    struct mc_gpu *gpu;             /* of calls on device memory; NULL: none was made */
    struct mc_stage *stages;        /* of calls on device memory that run on the host: spare ones */
    struct mc_gpu_alarm *gpu_alarm; /* of a root: ends kernels of its family; NULL: none */
    struct mc_proxy *proxy;         /* of a root: sends for kernels to other machines; NULL: none */
    meshcoll_request_t *cached[MC_CACHED_REQUESTS]; /* that serve calls */
    uint64_t cached_steps;                          /* of their plans */
    meshcoll_request_t
        *known[MC_KNOWN_CALLS]; /* of `cached`: lists by what they served last (known.h) */
};

static inline int32_t mc_root_rank(const meshcoll_t *h, int32_t rank)
{
    return h->root_rank ? h->root_rank[rank] : rank;
}
/* Returns its rank of a rank of the root; -1: it is no member. */
int32_t mc_rank_of_root(const meshcoll_t *h, int32_t root_rank);

#endif
