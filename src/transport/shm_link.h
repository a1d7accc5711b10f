/* What a rank of the shared-memory transport keeps, for the transport's own parts. */
#ifndef MC_TRANSPORT_SHM_LINK_H
#define MC_TRANSPORT_SHM_LINK_H

#include "transport/shm_memory.h"
#include "transport/shm_read.h"
#include "transport/shm_share.h"

/* A message that came before it was awaited. */
typedef struct mc_shm_early {
    struct mc_shm_early *next;
    mc_shm_slot_t slot;
    char data[MC_SHM_PAGE];
} mc_shm_early_t;

typedef struct mc_shm_link {
    mc_peer_t peer;
    struct mc_shm_link *next;
    mc_shm_mapping_t mapping; /* of the peer's segment */
    mc_shm_address_t address;
    mc_shm_channel_t *in, *out;
    uint64_t n_in, n_out;  /* slots read and written */
    uint64_t room;         /* slots that may be written, as last seen */
    mc_io_queue_t awaited; /* receives without a message */
    mc_shm_early_t *early, **early_end;
    mc_io_queue_t sending; /* sends that wait for room; with some bytes given: in pieces */
    mc_io_queue_t reading; /* receives in the middle of the peer's memory */
    mc_io_queue_t replies; /* receives whose word to the sender waits for room */
    mc_io_t *shared;       /* the one of `reading` that the sender writes too */
    mc_shm_helped_t helped;
} mc_shm_link_t;

typedef struct {
    mc_transport_t transport;
    mc_shm_params_t params;
    char dim[32];
    mc_shm_mapping_t mapping;
    mc_shm_address_t address;
    mc_shm_link_t *links;
    uint32_t n_offered; /* messages that others read, or will */
    mc_shm_early_t *spare;
    char piece[MC_SHM_PIECE_BYTES]; /* last: it need not be in the cache where nothing is reduced */
} mc_shm_t;

/* The early message of that tag, out of the list; NULL: none. Afterwards the caller makes it the transport's `spare`. */
mc_shm_early_t *mc_shm_take_early(mc_shm_link_t *link, uint64_t tag);
int mc_shm_keep_early(mc_shm_link_t *link, const mc_shm_slot_t *slot, const char *data);
void mc_shm_free_early(mc_shm_early_t *list);

#endif
