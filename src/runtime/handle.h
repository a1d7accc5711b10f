/* The handle of one rank: its mesh, transports and connections, choices, and what runs. */
#ifndef MC_RUNTIME_HANDLE_H
#define MC_RUNTIME_HANDLE_H

#include "mesh/link.h"
#include "runtime/choice.h"
#include "runtime/executor.h"
#include "runtime/settings.h"

enum { MC_CACHED_REQUESTS = 32 };

struct meshcoll {
    int32_t rank;
    mc_mesh_t mesh;
    char text[MC_MAX_DIMS * (MC_DIM_NAME + 12)];
    mc_links_t links;
    mc_choice_t choice;

    /* allgather is NULL where all ranks are in one process */
    meshcoll_oob_t oob;
    void (*free_context)(void *context);

    mc_transport_t *transport[MC_MAX_DIMS]; /* NULL along dimensions of extent 1 */
    mc_transport_t *polled[MC_MAX_DIMS];    /* those with connections */
    int32_t n_polled;
    char *addresses; /* of all ranks' transports, `address_stride` apart */
    size_t address_stride;
    mc_peer_t **peer; /* by rank, ascending */
    uint32_t n_peers, peer_capacity;
    uint64_t bytes_sent[MC_MAX_DIMS];

    uint32_t next_operation;                        /* made in the same order on all ranks */
    meshcoll_request_t *running;                    /* a list, the oldest first */
    meshcoll_request_t *cached[MC_CACHED_REQUESTS]; /* of the blocking calls, the latest first */
    mc_workspace_t workspace;                       /* theirs: one runs at a time */
    meshcoll_request_t *barrier;
    int32_t arrived; /* what a barrier adds up */
};

/* What creation starts from. `machine` as in boxes.h; both stay the caller's. */
typedef struct {
    meshcoll_oob_t oob; /* `context` is freed with `free_context` when the handle is */
    void (*free_context)(void *context);
    const int32_t *machine;
    const meshcoll_params_t *params;
} mc_creation_t;

/* Collective. */
int mc_handle_create(const mc_creation_t *creation, meshcoll_t **mesh);
/* A handle without transports, from settings; rank `rank` of `mesh`. */
int mc_handle_open(const mc_mesh_t *mesh, int32_t rank, const mc_settings_t *settings,
                   meshcoll_t **handle);

/* The connection to a rank, made when first asked for. */
int mc_handle_connect(meshcoll_t *h, int32_t rank, mc_peer_t **peer);

/* Moves messages and all running requests on; how many events there were. */
uint32_t mc_handle_progress(meshcoll_t *h);
/* Sleeps until a transport has news, or a little while. */
void mc_handle_sleep(meshcoll_t *h);

#endif
