/* The handle of one rank: its mesh, transports and connections, choices, and what runs. */
#ifndef MC_RUNTIME_HANDLE_H
#define MC_RUNTIME_HANDLE_H

#include "mesh/link.h"
#include "runtime/boxes.h"
#include "runtime/choice.h"
#include "runtime/executor.h"
#include "runtime/settings.h"
#include "transport/shm.h"

enum { MC_CACHED_REQUESTS = 32, MC_KNOWN_CALLS = 64 };

struct meshcoll {
    int32_t rank; /* in the mesh, as all ranks below this line; callers know comm_rank_of it */
    mc_mesh_t mesh;
    mc_order_t order;
    char text[MC_MESH_TEXT];
    mc_links_t links;
    mc_choice_t choice;
    bool reproducible;
    mc_numbering_t numbering; /* of the communicator's ranks on the mesh */

    /* of a sub-mesh; it closes before its parent */
    meshcoll_t *parent, *sibling;
    meshcoll_t *children;   /* a list, the latest first */
    mc_settings_t settings; /* of a mesh that was not split off */

    /* allgather is NULL where all ranks are in one process, and of a sub-mesh */
    meshcoll_oob_t oob;
    void (*free_context)(void *context);

    int32_t *machine; /* the lowest rank on the same one; NULL: all in one process */
    char tls[MC_MAX_DIMS][MC_TLS_TEXT];
    mc_shm_access_t access;
    mc_transport_t *transport[MC_MAX_DIMS]; /* NULL along dimensions of extent 1 */
    mc_transport_t *polled[MC_MAX_DIMS];    /* those with connections */
    int32_t n_polled;
    char *addresses; /* of all ranks' transports, `address_stride` apart, as they were gathered */
    size_t address_stride;
    int32_t beside;   /* of a sub-mesh: how many parts of its parent share a port; else 1 */
    size_t window;    /* of a sub-mesh: its parent's; else 0 */
    mc_peer_t **peer; /* by rank, ascending */
    uint32_t n_peers, peer_capacity;
    uint64_t bytes_sent[MC_MAX_DIMS];

    bool crowded;   /* more ranks than cores */
    bool pipelined; /* what started last has segments */

    int broken;       /* status of the first run that failed; there is no other after it */
    char why[400];    /* its text */
    int64_t check_at; /* when its peers are checked next (failure.h) */

    uint32_t n_calls, n_persistent;                 /* numbered so far: see calls.h */
    meshcoll_request_t *all;                        /* a list of all there are */
    meshcoll_request_t *running;                    /* a list, the oldest first */
    meshcoll_t *next_busy;                          /* in the thread's list of handles that run */
    meshcoll_request_t *cached[MC_CACHED_REQUESTS]; /* for calls */
    meshcoll_request_t *known[MC_KNOWN_CALLS]; /* of those, by a hash of what they last served */
    uint64_t n_taken;                          /* calls they have served */
    mc_workspace_t *spare, *last_spare;        /* memory of calls that are complete */
    struct mc_threads *threads;                /* NULL: one thread at a time, and no lock */
    struct mc_group *group;                    /* NULL: none yet */
    bool group_open;                           /* calls are collected */
    int32_t arrived;                           /* what a barrier adds up */
    struct mc_explain *explain;                /* NULL: nothing is recorded */
};

/* What creation starts from. `place` and `params` stay the caller's. */
typedef struct {
    meshcoll_oob_t oob; /* `context` is freed with `free_context` when the handle is */
    void (*free_context)(void *context);
    const mc_place_t *place; /* by rank of `oob` */
    const meshcoll_params_t *params;
    const char *tuned; /* the file that params->links were read from; NULL: they were not */
} mc_creation_t;

/* Collective. */
int mc_handle_create(const mc_creation_t *creation, meshcoll_t **mesh);
/* A handle without transports, from settings; rank `rank` of `mesh`. */
int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   meshcoll_t **handle);

/* Closes and frees it with its sub-meshes, when nobody sends to it any more; NULL is allowed. */
void mc_handle_close(meshcoll_t *h);

/* The connection to a rank, made when first asked for. */
int mc_handle_connect(meshcoll_t *h, int32_t rank, mc_peer_t **peer);
/* The innermost dimension whose transport streams (transport.h), on all ranks; -1: none does. */
int32_t mc_handle_wire(const meshcoll_t *h);
/* Bytes that the ranks of a box may have on the way through it together; 0: there is none. */
size_t mc_handle_window(const meshcoll_t *h);

/* Out of the thread's list of handles that run something. */
void mc_handle_leave(meshcoll_t *h);
/* Puts a started request last among the running ones. */
void mc_handle_enlist(meshcoll_t *h, meshcoll_request_t *r);

/* Moves messages and all running requests on, of this handle and all others that run something in
 * this thread: peers may wait in one of those for what this rank waits for here. How many events
 * there were. A handle's lock (threads.h) is held in all of these. */
uint32_t mc_handle_progress(meshcoll_t *h);
/* Sleeps until a transport of them has news, or a little while; whether one says it has. It may say so all the
 * time and have none: UCX does until a peer answers to a new connection. So sleep `blind` after that,
 * or who waits for a peer at work takes its core. */
bool mc_handle_sleep(meshcoll_t *h, bool blind);
/* To be called while this rank waits and nothing happens: a few times a second it checks that the peers that this rank
 * waits for are alive, on these handles too (failure.h). */
void mc_handle_check_peers(meshcoll_t *h);

#endif
