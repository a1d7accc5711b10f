/* State of the shared-memory transport: connections ("links") and the rank's own. */
#ifndef MC_TRANSPORT_SHM_LINK_H
#define MC_TRANSPORT_SHM_LINK_H

#include "transport/shm/bytes/shm_read.h"
#include "transport/shm/shm_memory.h"
#include "transport/transport.h"

/*
 * Both ends move a large message if both have time: the receiver reads it from the front, and the
 * sender, which would only wait, writes it from the back. Each claims half of what is left, so that
 * both finish together.
 */

/* Sender: the message whose receiver has requested help. */
typedef struct {
    mc_io_t *io;         /* NULL: none */
    uint64_t to, number; /* where to write in the receiver's memory; number of the sharing */
} mc_shm_helped_t;

/* Is sharing faster than reading alone? `oversubscribed`: ranks share cores. */
bool mc_shm_can_share(size_t bytes, bool oversubscribed);

/* Receiver, on its channel to the sender; a channel shares one message at a time. Returns the
 * number of the sharing. */
uint64_t mc_shm_share_begin(mc_shm_share_t *share);
/* Claims the next bytes of a message of `bytes`, at most `most`. 0: all are claimed. */
size_t mc_shm_share_front(mc_shm_share_t *share, size_t bytes, size_t most);
/* The receiver stops: claims all that is left, so that the sender starts no further write.
 * Returns the bytes that the sender has claimed. */
size_t mc_shm_share_stop(mc_shm_share_t *share, size_t bytes);
/* Once all is claimed: has the sender written its `rest` bytes? REFUSED: it cannot write and
 * stops. */
typedef enum { MC_SHM_SHARE_OPEN, MC_SHM_SHARE_DONE, MC_SHM_SHARE_REFUSED } mc_shm_rest_t;
mc_shm_rest_t mc_shm_share_rest(const mc_shm_share_t *share, size_t rest);
/* Tells valgrind, where it runs, that the bytes of the receive that are not done are written: it does not see
 * what another process writes. */
void mc_shm_share_note(const mc_io_t *io);

/* Sender: claims and writes the next bytes; returns the number of events. At the end
 * `helped->io` is NULL. */
uint32_t mc_shm_share_help(mc_shm_share_t *share, pid_t pid, mc_shm_helped_t *helped,
                           mc_shm_piece_t *piece);

/*
 * A message that is pushed is written, once for all its receivers, to a board in the sender's segment, where they
 * read it. It uses the board only if all of it has room at once, so the sender never waits for a reader.
 */

/* The sender's bookkeeping of its board. */
typedef struct {
    size_t room;             /* bytes of the board */
    size_t ring, most;       /* bytes of it in use, and the most of them */
    uint32_t laps;           /* since the ring grew */
    size_t at[MC_SHM_POSTS]; /* offsets of the posts in use */
    uint32_t first, n;       /* posts in use, the oldest first; numbers are modulo MC_SHM_POSTS */
    size_t end;              /* end of the newest */
    uint32_t readers;        /* readers of the newest while it is unwritten; 0: it is written */
    uint32_t more;           /* sends of it that are still to start */
    mc_message_t message;    /* the newest */
    mc_io_queue_t waiting;   /* sends that complete when it is written */
} mc_shm_poster_t;

/* `room`: bytes of the board. `oversubscribed`: ranks share cores. */
void mc_shm_poster_init(mc_shm_poster_t *p, size_t room, bool oversubscribed);
/* Finds room for the message on the board: that of the newest post, if this is another send of
 * it, or, if it is `pushed`, a new one. false: there is none, or it need not go there. */
bool mc_shm_post(mc_shm_poster_t *p, mc_shm_board_t *board, const mc_message_t *m, bool pushed);
/* Fills in the words of one reader's slot. */
void mc_shm_post_told(const mc_shm_poster_t *p, uint64_t word[3]);
/* Writes the newest post, if unwritten. Returns the number of events. */
uint32_t mc_shm_post_write(mc_shm_poster_t *p, mc_shm_board_t *board);

/* Consumes what is there of the post that `io` refers to; returns whether that completes it. */
bool mc_shm_post_read(mc_shm_board_t *board, mc_io_t *io);
/* The reader gives up the rest of the post. */
void mc_shm_post_leave(mc_shm_board_t *board, const mc_io_t *io);

/* An unexpected message: it arrived before its receive was posted. */
typedef struct mc_shm_early {
    mc_hashed_t by_tag; /* first */
    mc_shm_slot_t slot;
    _Alignas(64) char data[MC_SHM_PAGE]; /* for users' operations */
} mc_shm_early_t;

typedef struct mc_shm_link {
    mc_peer_t peer;
    struct mc_shm_link *next;
    mc_shm_mapping_t mapping; /* of the peer's segment */
    mc_shm_address_t address;
    mc_shm_channel_t *in, *out;
    char *in_pages, *out_pages;
    mc_shm_shape_t shape;
    bool untold;          /* something was sent, and the reader may sleep */
    bool warm;            /* the pages to fill have been written before */
    uint32_t pages_due;   /* number of next messages that are expected in a page, too */
    uint64_t n_in, n_out; /* slots read and written */
    uint64_t told_in;     /* slots read that the writer was told of */
    uint64_t room;        /* value of n_out at which the slots seen free are used up */
    uint64_t pages_in, pages_out, pages_told; /* the same of pages */
    uint64_t filled_at[MC_SHM_SLOTS];         /* by page: n_out behind the slot it belongs to */
    mc_hash_t awaited;                        /* receives without a message */
    mc_hash_t early;
    mc_io_queue_t sending; /* sends that wait for a free slot, perhaps for the next piece */
    mc_io_queue_t reading; /* receives that read the peer's memory or board */
    mc_io_queue_t replies; /* receives whose reply to the sender waits for a free slot */
    mc_io_t *shared;       /* the receive in `reading` that the sender helps with */
    bool copies;           /* the peer's memory could be read, and cannot any more */
    bool helpless;         /* the peer cannot write to this rank's memory */
    size_t unsure; /* bytes that the peer had begun to write of a receive that was given up */
    mc_shm_helped_t helped;
    uint32_t n_offered; /* messages that the peer has yet to read */
    uint32_t n_asked;   /* messages that come in pieces */
} mc_shm_link_t;

typedef struct {
    mc_transport_t transport;
    mc_shm_params_t params;
    char dim[32];
    mc_shm_mapping_t mapping;
    mc_shm_address_t address;
    mc_shm_link_t *links;
    mc_shm_mapping_t *held; /* by rank - base: segments of ranks without a link */
    bool untold;            /* set on some link */
    uint32_t n_offered;     /* of all links */
    mc_shm_poster_t poster;
    mc_hashed_t *spare;     /* unexpected messages */
    mc_listener_t listener; /* handle is NULL: none */
    mc_shm_piece_t piece;   /* last: it is used only where messages are reduced, or copies stall */
} mc_shm_t;

/* The next slot to fill; NULL: none is free. */
static inline mc_shm_slot_t *mc_shm_free_slot(mc_shm_link_t *link)
{
    if (link->n_out == link->room) {
        link->room =
            atomic_load_explicit(&link->out->taken, memory_order_acquire) + link->shape.slots;
        if (link->n_out == link->room)
            return NULL;
    }
    return &link->out->slot[link->n_out & (link->shape.slots - 1)];
}

/* Is the next page to fill free? Where there are as many pages as slots, it is if a slot is. */
static inline bool mc_shm_page_is_free(mc_shm_link_t *link)
{
    const uint64_t at = link->filled_at[link->pages_out & (link->shape.pages - 1)];
    if (at + link->shape.slots > link->room)
        link->room =
            atomic_load_explicit(&link->out->taken, memory_order_acquire) + link->shape.slots;
    return at + link->shape.slots <= link->room;
}

/* The same, for a message with a page. */
static inline mc_shm_slot_t *mc_shm_free_slot_and_page(mc_shm_link_t *link)
{
    mc_shm_slot_t *const slot = mc_shm_free_slot(link);
    return slot && mc_shm_page_is_free(link) ? slot : NULL;
}

static inline bool mc_shm_has_page(const mc_shm_slot_t *slot)
{
    return slot->kind == MC_SHM_PIECE ||
           (slot->kind == MC_SHM_MESSAGE && slot->bytes > MC_SHM_SMALL);
}

/* The turn of the n-th slot once it is written. */
static inline uint32_t mc_shm_turn(uint64_t n)
{
    return (uint32_t)n + 1;
}

enum { MC_SHM_LINE = 64, MC_SHM_AHEAD = 512, MC_SHM_PAGES_DUE = 16 };

static inline char *mc_shm_next_in(const mc_shm_link_t *link)
{
    return link->in_pages + (link->pages_in & (link->shape.pages - 1)) * MC_SHM_PAGE;
}

/* The next slot to read; NULL: nothing new. Where a page is expected its first lines are
 * prefetched while this rank polls, so that a short message costs one cache miss rather than two
 * in a row. Not otherwise: where messages have long been in their slots the prefetches only
 * cost. */
static inline const mc_shm_slot_t *mc_shm_news(const mc_shm_link_t *link)
{
    const mc_shm_slot_t *const slot = &link->in->slot[link->n_in & (link->shape.slots - 1)];
    __builtin_prefetch((const char *)slot + MC_SHM_SLOT_BYTES / 2);
    if (link->pages_due > 0) {
        const char *const page = mc_shm_next_in(link);
        __builtin_prefetch(page);
        __builtin_prefetch(page + MC_SHM_LINE);
    }
    return atomic_load_explicit(&slot->turn, memory_order_acquire) == mc_shm_turn(link->n_in)
               ? slot
               : NULL;
}

/* The message's data. Prefetches the first lines of a page: some code runs before they are read. */
static inline const char *mc_shm_data(mc_shm_link_t *link, const mc_shm_slot_t *slot)
{
    if (slot->bytes <= MC_SHM_SMALL) {
        link->pages_due -= link->pages_due > 0;
        return slot->data;
    }
    link->pages_due = MC_SHM_PAGES_DUE;
    const char *const page = mc_shm_next_in(link);
    for (size_t i = 0; i < MC_SHM_AHEAD && i < slot->bytes; i += MC_SHM_LINE)
        __builtin_prefetch(page + i);
    return page;
}

/* Finds the channels of a connection whose segments are mapped. A page lies on the NUMA node of the rank that
 * touches it first, which should be the receiver, as it polls: touches those of the channel to this rank. */
void mc_shm_link_channels(mc_shm_link_t *link);

/* See mc_transport_ops_t. */
int mc_shm_connect(mc_transport_t *t, int32_t rank, const void *address, mc_peer_t **peer);
void mc_shm_hold(mc_transport_t *t, int32_t rank, const void *address);
void mc_shm_close(mc_transport_t *t);

/* Removes the first unexpected message of that tag, or that is a header of a tagged message; NULL: there is none.
 * The caller returns it by mc_shm_return_early. */
mc_shm_early_t *mc_shm_take_early(mc_shm_link_t *link, uint64_t tag);
mc_shm_early_t *mc_shm_take_early_header(mc_shm_link_t *link);
bool mc_shm_differs(mc_transport_t *t, uint64_t tag, uint64_t *other);
void mc_shm_return_early(mc_shm_t *shm, mc_shm_early_t *e);
int mc_shm_keep_early(mc_shm_link_t *link, const mc_shm_slot_t *slot, const char *data);
/* Frees those of a link that is closed, and the spare ones. */
void mc_shm_free_early(mc_shm_link_t *link);
void mc_shm_free_spare(mc_shm_t *shm);

/* shm_send.c: writes messages to slots and pages, or offers them to their receivers. A message without room waits in the
 * link's `sending` queue. */
int mc_shm_send(mc_peer_t *peer, const mc_message_t *m, mc_io_t *io);
void mc_shm_wake_peers(mc_transport_t *t);

/* Continues the sends that wait; returns the number of events. */
uint32_t mc_shm_send_on(mc_shm_link_t *link);

/* Is there room for the first send, or reply, that waits? */
bool mc_shm_has_room(mc_shm_link_t *link);

/* The receiver has the whole message that was offered. */
void mc_shm_finish_offer(mc_shm_link_t *link, mc_io_t *io);

/* Wakes the receiver if it sleeps; makes a filled slot visible to it, and wakes it. */
void mc_shm_wake(mc_shm_link_t *link);
void mc_shm_publish(mc_shm_link_t *link, mc_shm_slot_t *slot);

/*
 * shm_failure.c: a rank whose mesh failed sets a flag and the reason in its segment before its caller may change the
 * buffers of messages it has offered. A reader checks the flag after it has read such a message, as with a sequence lock.
 */

/* To call after a message was read from its sender's memory. OK: it was intact. */
int mc_shm_check_sender(const mc_shm_link_t *link);

/* See mc_transport_ops_t. */
int mc_shm_check(mc_transport_t *t);
void mc_shm_abandon(mc_transport_t *t, const char *why);
int32_t mc_shm_writer(mc_transport_t *t);

/* Gives up the sender's help with the receive that is shared: claims what is left of it. What the sender has begun it
 * may still write. */
void mc_shm_stop_sharing(mc_shm_link_t *link);

#endif
