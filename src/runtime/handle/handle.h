/* The handle of one rank: its mesh, transports and connections, choices, and what runs. */
#ifndef MC_RUNTIME_HANDLE_H
#define MC_RUNTIME_HANDLE_H

#include "mesh/link.h"
#include "runtime/choose/choice.h"
#include "runtime/execute/executor.h"
#include "runtime/place/boxes.h"
#include "runtime/place/settings.h"
#include "transport/shm/shm.h"

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
    void (*ended)(meshcoll_request_t *request);     /* one of them has, and is out of the list */
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

#endif
