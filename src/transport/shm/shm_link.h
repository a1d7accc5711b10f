/* What a rank of the shared-memory transport keeps, for the transport's own parts. */
#ifndef MC_TRANSPORT_SHM_LINK_H
#define MC_TRANSPORT_SHM_LINK_H

#include "transport/shm/shm_board.h"
#include "transport/shm/shm_memory.h"
#include "transport/shm/shm_read.h"
#include "transport/shm/shm_share.h"

/* A message that came before it was awaited. */
typedef struct mc_shm_early {
    struct mc_shm_early *next;
    mc_shm_slot_t slot;
    size_t come; /* bytes */
    char data[MC_SHM_EAGER];
} mc_shm_early_t;

/* Whose pieces follow: a receive's, an early message's, or nobody's. */
typedef struct {
    mc_io_t *io;
    mc_shm_early_t *early;
} mc_shm_coming_t;

typedef struct mc_shm_link {
    mc_peer_t peer;
    struct mc_shm_link *next;
    mc_shm_mapping_t mapping; /* of the peer's segment */
    mc_shm_address_t address;
    mc_shm_channel_t *in, *out;
    bool untold;        /* something was sent, and its reader may sleep */
    bool warm;          /* the pages to fill are in this core's cache, or were */
    uint32_t pages_due; /* so many messages after one in a page, the next is expected in one too */
    uint64_t n_in, n_out;  /* slots read and written */
    uint64_t room;         /* slots that may be written, as last seen */
    mc_io_queue_t awaited; /* receives without a message */
    mc_shm_coming_t coming;
    mc_shm_early_t *early, **early_end;
    mc_io_queue_t sending; /* sends that wait for room, for the next piece's perhaps */
    mc_io_queue_t reading; /* receives in the middle of the peer's memory */
    mc_io_queue_t replies; /* receives whose word to the sender waits for room */
    mc_io_t *shared;       /* the one of `reading` that the sender writes too */
    mc_shm_helped_t helped;
    uint32_t n_offered; /* messages that the peer reads, or will */
} mc_shm_link_t;

typedef struct {
    mc_transport_t transport;
    mc_shm_params_t params;
    char dim[32];
    mc_shm_mapping_t mapping;
    mc_shm_address_t address;
    mc_shm_link_t *links;
    bool untold;        /* some link is */
    uint32_t n_offered; /* of all links */
    mc_shm_poster_t poster;
    mc_shm_early_t *spare;
    char piece[MC_SHM_PIECE_BYTES]; /* last: it need not be in the cache where nothing is reduced */
} mc_shm_t;

/* The next slot to fill, or NULL. */
static inline mc_shm_slot_t *mc_shm_free_slot(mc_shm_link_t *link)
{
    if (link->n_out == link->room) {
        link->room = atomic_load_explicit(&link->out->taken, memory_order_acquire) + MC_SHM_SLOTS;
        if (link->n_out == link->room)
            return NULL;
    }
    return &link->out->slot[link->n_out % MC_SHM_SLOTS];
}

static inline uint32_t mc_shm_lap(uint64_t n)
{
    return (uint32_t)(n / MC_SHM_SLOTS) + 1;
}

enum { MC_SHM_LINE = 64, MC_SHM_AHEAD = 512, MC_SHM_PAGES_DUE = 16 };

static inline void *mc_shm_page(mc_shm_channel_t *channel, uint64_t n)
{
    return channel->page[n % MC_SHM_SLOTS];
}

/* The next slot to read, or NULL: there is nothing new. A page's first lines come to this core while it looks, so that
 * there is one wait for a short message and not two: of 128 bytes a broadcast took 0.34 us, else 0.41. Not where messages
 * have long been in their slots: an alltoall of 32 bytes by 8 ranks on 2 cores took 13.4 us with it, 12.7 without. */
static inline const mc_shm_slot_t *mc_shm_news(const mc_shm_link_t *link)
{
    const mc_shm_slot_t *const slot = &link->in->slot[link->n_in % MC_SHM_SLOTS];
    const char *const page = mc_shm_page(link->in, link->n_in);
    __builtin_prefetch((const char *)slot + MC_SHM_SLOT_BYTES / 2);
    if (link->pages_due > 0) {
        __builtin_prefetch(page);
        __builtin_prefetch(page + MC_SHM_LINE);
    }
    return atomic_load_explicit(&slot->turn, memory_order_acquire) == mc_shm_lap(link->n_in) ? slot
                                                                                             : NULL;
}

/* Where the message of the next slot to read is. Its first lines are asked for, as who reads them has some way to go. */
static inline const char *mc_shm_data(mc_shm_link_t *link, const mc_shm_slot_t *slot)
{
    if (slot->bytes <= MC_SHM_SMALL) {
        link->pages_due -= link->pages_due > 0;
        return slot->data;
    }
    link->pages_due = MC_SHM_PAGES_DUE;
    const char *const page = mc_shm_page(link->in, link->n_in);
    for (size_t i = 0; i < MC_SHM_AHEAD && i < slot->bytes; i += MC_SHM_LINE)
        __builtin_prefetch(page + i);
    return page;
}

/* Of a message, what is in its slot or in the page beside that. */
static inline size_t mc_shm_first(const mc_shm_slot_t *slot)
{
    return slot->bytes < MC_SHM_PAGE ? slot->bytes : MC_SHM_PAGE;
}

/* The early message of that tag, out of the list; NULL: none. Afterwards the caller makes it the transport's `spare`. */
mc_shm_early_t *mc_shm_take_early(mc_shm_link_t *link, uint64_t tag);
int mc_shm_keep_early(mc_shm_link_t *link, const mc_shm_slot_t *slot, const char *data);
void mc_shm_free_early(mc_shm_early_t *list);
/* The receive that awaits that tag, out of the list; mostly it is the first. NULL: none. */
mc_io_t *mc_shm_take_awaited(mc_io_queue_t *list, uint64_t tag);

#endif
