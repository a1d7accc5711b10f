/*
 * Transports: ways to move messages between ranks. One transport serves one dimension of the mesh;
 * a connection is made when a plan first needs the peer. Messages match by tag, which says who
 * sent it, in which operation, and which of the pair's messages it is; both ends know its length.
 */
#ifndef MC_TRANSPORT_TRANSPORT_H
#define MC_TRANSPORT_TRANSPORT_H

#include "base/base.h"

/* Bytes in one piece; the same in memory as UCX's and the kernel's scatter lists. */
typedef struct {
    void *at;
    size_t bytes;
} mc_span_t;

/* What a message consists of. `span` stays valid until it is complete. */
typedef struct {
    uint64_t tag;
    const mc_span_t *span;
    uint32_t n_spans;
    size_t bytes; /* of all spans */
    /* Of a send: so many more of these bytes follow in this operation, each with one less, to other peers. Nothing changes
     * the bytes until the last of them has begun. */
    uint32_t more;
    /* Of a send: its receiver has more to do than its sender, who rather brings it than lets it be fetched. */
    bool pushed;
    /* Of a send: its receiver sends as well, and neither has time to help the other. */
    bool mutual;
    /* Of a send: others read what its sender has for them meanwhile, on its own core too, where who helps one keeps another
     * waiting. */
    bool unhelped;
} mc_message_t;

typedef struct mc_io mc_io_t;

/* Takes a message piece by piece, from its first byte to its last, where it lies: in the peer's memory,
 * or in a buffer that is still in the cache. Pieces end with a span, or are a multiple of MC_PIECE_UNIT
 * bytes long: no element that divides that is cut. */
enum { MC_PIECE_UNIT = 4096 };
typedef struct {
    void (*take)(void *context, mc_io_t *io, const void *piece, size_t bytes);
    void *context;
} mc_taker_t;

/* A message under way. The transport puts it on `finished`, in order of completion. */
typedef struct {
    mc_io_t *first, *last;
} mc_io_queue_t;
struct mc_io {
    mc_io_t *next; /* of whichever list it is in */
    mc_io_queue_t *finished;
    int status; /* of an error the text is kept for meshcoll_last_error() */
    /* of receives, by transports that learn only at the end what came; `from` for messages */
    int32_t from;
    size_t awaited;
    /* by transports that move the bytes themselves */
    mc_message_t message; /* its spans: those that are left */
    mc_taker_t taker;     /* take is NULL where bytes are written to the message's spans */
    size_t done, at;      /* bytes: of the message, of its first span that is left */
    uint64_t offer[3];    /* what the peer said of its end */
    size_t offer_at;
};

static inline void mc_io_append(mc_io_queue_t *q, mc_io_t *io)
{
    io->next = NULL;
    if (q->first)
        q->last->next = io;
    else
        q->first = io;
    q->last = io;
}
static inline void mc_io_finish(mc_io_t *io, int status)
{
    io->status = status;
    mc_io_append(io->finished, io);
}
static inline mc_io_t *mc_io_pop(mc_io_queue_t *q)
{
    mc_io_t *const io = q->first;
    if (io)
        q->first = io->next;
    return io;
}

/*
 * Tags. Operations are numbered alike on all ranks, as they are made in the same order; messages
 * of a pair within one are sent and awaited in order, so numbers may wrap.
 */
enum {
    MC_TAG_SOURCE_BITS = 22,
    MC_TAG_OPERATION_BITS = 22,
    MC_TAG_KIND_BITS = 2,
    MC_TAG_SEQ_BITS = 18
};
/* A message of no bytes the other way, by which its receiver asks for that message or says to have it (runtime/execute/credit.h). */
#define MC_TAG_CREDIT (UINT64_C(1) << MC_TAG_SEQ_BITS)
/* The last message of a pair in an operation. Ranks that disagree about a count cut their vectors into other numbers of
 * messages, which may be of equal lengths: then the last one never matches, and no rank takes a part for the whole. */
#define MC_TAG_LAST (UINT64_C(2) << MC_TAG_SEQ_BITS)
/* The operation that greets new connections; no other has its number. */
enum { MC_TAG_GREETING = (1 << MC_TAG_OPERATION_BITS) - 1 };
static inline uint64_t mc_tag(int32_t source, uint32_t operation, uint32_t seq)
{
    const uint64_t op = operation & ((UINT32_C(1) << MC_TAG_OPERATION_BITS) - 1);
    const int below = MC_TAG_KIND_BITS + MC_TAG_SEQ_BITS;
    return ((uint64_t)source << (MC_TAG_OPERATION_BITS + below)) | (op << below) |
           (seq & ((UINT32_C(1) << MC_TAG_SEQ_BITS) - 1));
}

typedef struct mc_transport mc_transport_t;
typedef struct {
    mc_transport_t *transport;
    int32_t rank;
    bool greeted; /* it stands in both directions */
} mc_peer_t;      /* a connection; transports append what is theirs */

/*
 * send and recv return OK when complete at once (`io` is not used then), IN_PROGRESS when `io` will be
 * on its queue later, or an error. A message of another length than awaited is an error.
 */
typedef struct {
    /* `address` is the peer's transport's; connections live until the transport is closed */
    int (*connect)(mc_transport_t *t, int32_t rank, const void *address, mc_peer_t **peer);
    int (*send)(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io);
    int (*recv)(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io);
    /* The message goes to the taker, whose operands are ready; its spans are not used. NULL: it is
     * received into memory, and reduced from there. */
    int (*recv_reduce)(mc_peer_t *peer, const mc_message_t *message, const mc_taker_t *taker,
                       mc_io_t *io);
    /* Complete when nothing sent so far needs more progress by this rank, so that it may go and do
     * something else; it waits for whatever was sent before, whoever sent it. IN_PROGRESS sets
     * *flush, to be asked after with flushed() until that returns something else, or to be dropped.
     * Unless `must`, it is OK at once behind a flush that was dropped and is not complete yet. NULL:
     * completed sends are that far. */
    int (*flush)(mc_transport_t *t, bool must, void **flush);
    int (*flushed)(mc_transport_t *t, void *flush);
    void (*drop_flush)(mc_transport_t *t, void *flush);
    /* Wakes those who sleep and were sent something since: to be called when all sends that can begin have begun. NULL: sends
     * do so themselves. */
    void (*tell)(mc_transport_t *t);
    /* Is some message that is awaited not there yet? Fewer looks than progress takes. NULL: progress tells. */
    bool (*lacks)(const mc_transport_t *t);
    /* Moves what can move; how many events there were. */
    uint32_t (*progress)(mc_transport_t *t);
    /* OK: `fd` becomes readable at the next event. IN_PROGRESS: there are events already. */
    int (*arm)(mc_transport_t *t);
    /* For who has long waited in vain: OK, or an error where a rank is gone that it waits for. NULL: there is no telling. */
    int (*check)(mc_transport_t *t);
    /* This rank's mesh failed, and why: what is under way stays so, and only close() follows. On return no peer writes to
     * this rank's messages any more, and what a peer reads of them from now on fails there. NULL: without progress here
     * peers do neither. */
    void (*abandon)(mc_transport_t *t, const char *why);
    /* Frees the transport and its connections, when all operations are complete on all ranks. */
    void (*close)(mc_transport_t *t);
} mc_transport_ops_t;

struct mc_transport {
    const mc_transport_ops_t *ops;
    const int32_t *known_as; /* by rank: its number in messages for people; NULL: the same */
    const void *address;     /* to hand to the peers */
    size_t address_bytes;
    bool greets;  /* a connection needs both ends' progress to stand */
    int fd;       /* -1: progress is all there is */
    bool streams; /* a send completes without its receiver, when the wire has taken it */
    bool pulls;   /* one end moves large messages by the kernel, page by page of the other's */
};

static inline int32_t mc_transport_known_as(const mc_transport_t *t, int32_t rank)
{
    return t->known_as ? t->known_as[rank] : rank;
}

#endif
