/*
 * Transports move messages between ranks. One transport serves one dimension of the mesh; a
 * connection is made when a plan first needs the peer. Messages match by tag, which names the
 * sender, the operation and the message's number within the pair. Both ends know the length in
 * advance.
 */
#ifndef MC_TRANSPORT_TRANSPORT_H
#define MC_TRANSPORT_TRANSPORT_H

#include "base/base.h"
#include "base/hash.h"
#include "base/list.h"

/* A contiguous piece of memory, laid out like UCX's and the kernel's scatter list entries. */
typedef struct {
    void *at;
    size_t bytes;
} mc_span_t;

/* A message to send or receive. The caller keeps the memory behind `span` valid until the
 * message completes. */
typedef struct {
    uint64_t tag;
    const mc_span_t *span;
    uint32_t n_spans;
    size_t bytes; /* of all spans */
    /* Sends: number of sends of the same bytes to other peers that follow in this operation;
     * each has one less. The bytes do not change until the last of them has started. */
    uint32_t more;
    /* Sends: the receiver has more to do than the sender, so the sender pushes the message
     * rather than let the receiver pull it. */
    bool pushed;
    /* Its one span is memory of a GPU, in threads whose current CUDA context is that memory's; the
     * peer's end may be other memory. Only where the transport moves_device_memory. */
    bool on_device;
} mc_message_t;

typedef struct mc_io mc_io_t;

/* Consumes a message in place, piece by piece from the first byte to the last; a piece lies in
 * the peer's segment or in a buffer that is still in the cache. A piece ends at the end of a
 * span or is a multiple of MC_PIECE_UNIT bytes long, so no element whose size divides that unit
 * is cut. */
enum { MC_PIECE_UNIT = 4096 };
typedef struct {
    void (*take)(void *context, mc_io_t *io, const void *piece, size_t bytes);
    void *context;
} mc_consumer_t;

/* Whoever has something to do when a message completes: it joins the list then. */
typedef struct {
    mc_list_node_t node; /* first */
    mc_list_t *list;
} mc_ready_t;
static inline void mc_ready_mark(mc_ready_t *r)
{
    mc_list_move(r->list, &r->node);
}

/* A message in flight. On completion the transport appends it to `finished`. */
typedef struct {
    mc_io_t *first, *last;
    mc_ready_t *owner; /* of completions; NULL: it looks by itself */
} mc_io_queue_t;
struct mc_io {
    mc_hashed_t awaited_by; /* first: among receives without a message, by tag */
    mc_io_t *next;          /* of whichever list it is in */
    mc_io_queue_t *finished;
    int status;   /* of an error, whose text is what meshcoll_last_error() returns */
    int32_t from; /* the peer, for error texts */
    union {
        /* For receives of transports that learn the length on completion. */
        size_t awaited;
        const char *where; /* the peer is, for error texts: of sends to other machines */
    };
    /* For transports that copy the bytes themselves. */
    mc_message_t message;   /* its spans: those that are left */
    mc_consumer_t consumer; /* take is NULL where bytes go to the message's spans */
    size_t done, at;        /* bytes: of the message, of its first span that is left */
    uint64_t offer[3];      /* where the peer has its end (shm_memory.h) */
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
/* For an owner that is at work and looks at its queue next; mc_io_finish for all others. */
static inline void mc_io_end(mc_io_t *io, int status)
{
    io->status = status;
    mc_io_append(io->finished, io);
}
static inline void mc_io_finish(mc_io_t *io, int status)
{
    const mc_io_queue_t *const q = io->finished;
    if (!q->first && q->owner) /* else it is marked, or at work */
        mc_ready_mark(q->owner);
    mc_io_end(io, status);
}
static inline mc_io_t *mc_io_pop(mc_io_queue_t *q)
{
    mc_io_t *const io = q->first;
    if (io)
        q->first = io->next;
    return io;
}

/*
 * Tags: source, context, operation, kind, phase, digest. The source is a mesh rank of the job's first mesh.
 * The context is that of the mesh, sub-mesh or group: a rank has one at a time for each
 * (handle/family.h). All ranks create operations in the same order, so they number them identically.
 * Messages of a pair within one phase of an operation are sent and received in order, and those with
 * the same tag match in order. Phases run ahead of each other by any number of messages, so they are
 * told apart. The digest is that of the call (handle/digest.h): where ranks make different calls under one
 * number, none takes the other's data.
 */
enum {
    MC_TAG_SOURCE_BITS = 19,
    MC_TAG_CONTEXT_BITS = 12,
    MC_TAG_OPERATION_BITS = 16,
    MC_TAG_KIND_BITS = 2,
    MC_TAG_PHASE_BITS = 6,
    MC_TAG_DIGEST_BITS = 9,
    MC_TAG_SEQ_BITS = MC_TAG_PHASE_BITS + MC_TAG_DIGEST_BITS
};
_Static_assert(MC_TAG_SOURCE_BITS + MC_TAG_CONTEXT_BITS + MC_TAG_OPERATION_BITS + MC_TAG_KIND_BITS +
                       MC_TAG_SEQ_BITS ==
                   64,
               "a tag has 64 bits");
/* An empty message from the receiver to the sender: it requests the next message of its lane, or confirms
 * the arrival of one (runtime/execute/pace.h). */
#define MC_TAG_CREDIT (UINT64_C(1) << MC_TAG_SEQ_BITS)
/* The last message of a pair in an operation. Ranks that disagree about the count split their
 * vectors into different numbers of messages, whose lengths may be equal. The last one then
 * never matches, so no rank mistakes a part for the whole. */
#define MC_TAG_LAST (UINT64_C(2) << MC_TAG_SEQ_BITS)
/* Operations of calls are below, of persistent requests and all else from here on (call/numbers.h). */
enum { MC_TAG_CALLS = 1 << (MC_TAG_OPERATION_BITS - 1) };
/* The operation that greets new connections; no other operation has this number. */
enum { MC_TAG_GREETING = (1 << MC_TAG_OPERATION_BITS) - 1 };
/* The operation of the headers of tagged messages (runtime/message), with digest 0. */
enum { MC_TAG_MESSAGE = MC_TAG_GREETING - 1 };
/* The operation of what proxies send for kernels (gpu/route). */
enum { MC_TAG_ROUTE = MC_TAG_MESSAGE - 1 };
/* The data of a tagged message: a kind of its own, whose operation, phase and digest are the low 31 bits of
 * its id. So many may be in flight between two ranks, in any order. */
#define MC_TAG_DATA (UINT64_C(3) << MC_TAG_SEQ_BITS)
_Static_assert(MC_TAG_OPERATION_BITS + MC_TAG_SEQ_BITS == 31, "the id of data has 31 bits");
static inline uint64_t mc_tag(int32_t source, uint32_t operation, uint32_t digest)
{
    const uint64_t op = operation & ((UINT32_C(1) << MC_TAG_OPERATION_BITS) - 1);
    const int below = MC_TAG_KIND_BITS + MC_TAG_SEQ_BITS;
    return ((uint64_t)source << (MC_TAG_CONTEXT_BITS + MC_TAG_OPERATION_BITS + below)) |
           (op << below) | (digest & ((UINT32_C(1) << MC_TAG_DIGEST_BITS) - 1));
}
/* To be added to the others. */
static inline uint64_t mc_tag_context(uint32_t context)
{
    return (uint64_t)context << (MC_TAG_OPERATION_BITS + MC_TAG_KIND_BITS + MC_TAG_SEQ_BITS);
}
static inline uint64_t mc_tag_phase(uint32_t phase)
{
    return (uint64_t)phase << MC_TAG_DIGEST_BITS;
}
static inline uint64_t mc_tag_data(int32_t source, uint32_t id)
{
    const uint32_t low = (UINT32_C(1) << MC_TAG_SEQ_BITS) - 1;
    return mc_tag(source, id >> MC_TAG_SEQ_BITS, 0) | MC_TAG_DATA | (id & low);
}

static inline uint32_t mc_tag_digest(uint64_t tag)
{
    return (uint32_t)tag & ((UINT32_C(1) << MC_TAG_DIGEST_BITS) - 1);
}
/* The bits that tell to which operation a message of the tag `own` belongs, whoever sent it and of whatever kind it is.
 * All that proxies send is one operation: of that, all bits but the digest, which tell the message. */
static inline uint64_t mc_tag_alike_bits(uint64_t own)
{
    const int below = MC_TAG_KIND_BITS + MC_TAG_SEQ_BITS;
    const uint32_t operation = (uint32_t)(own >> below) & MC_TAG_GREETING;
    return operation == MC_TAG_ROUTE ? ~((UINT64_C(1) << MC_TAG_DIGEST_BITS) - 1)
                                     : ~UINT64_C(0) >> MC_TAG_SOURCE_BITS >> below << below;
}
/* Is it of the same operation as a message of the tag `own`, and of another call? */
static inline bool mc_tag_differs(uint64_t tag, uint64_t own)
{
    const uint64_t data = UINT64_C(3) << MC_TAG_SEQ_BITS;
    return (tag & data) != MC_TAG_DATA && ((tag ^ own) & mc_tag_alike_bits(own)) == 0 &&
           mc_tag_digest(tag) != mc_tag_digest(own);
}

/* Of a header, all bits but those of the source and the context. */
static inline uint64_t mc_tag_header_bits(void)
{
    return ~UINT64_C(0) >> (MC_TAG_SOURCE_BITS + MC_TAG_CONTEXT_BITS);
}
static inline bool mc_tag_is_header(uint64_t tag)
{
    return (tag & mc_tag_header_bits()) == mc_tag(0, MC_TAG_MESSAGE, 0);
}
static inline int32_t mc_tag_source(uint64_t tag)
{
    return (int32_t)(tag >> (64 - MC_TAG_SOURCE_BITS));
}
static inline uint32_t mc_tag_context_of(uint64_t tag)
{
    const uint32_t mask = (UINT32_C(1) << MC_TAG_CONTEXT_BITS) - 1;
    return (uint32_t)(tag >> (MC_TAG_OPERATION_BITS + MC_TAG_KIND_BITS + MC_TAG_SEQ_BITS)) & mask;
}

/* Who receives headers, with their tags. `handle` copies a header of MC_HEADER_BYTES, which fit into one
 * slot of shared memory, and does not call the transport. false: out of memory; the header is offered
 * again. Header NULL: receiving has failed, with meshcoll_last_error(). */
enum { MC_HEADER_BYTES = 104 };
typedef struct {
    bool (*handle)(void *context, uint64_t tag, const void *header);
    void *context;
} mc_listener_t;

typedef struct mc_transport mc_transport_t;
typedef struct {
    mc_transport_t *transport;
    int32_t rank;
    bool greeting; /* its greeting has begun */
    bool greeted;  /* both directions are established */
    /* What the listener's owner awaits from the peer: check() looks whether it is there. */
    uint32_t wanted;
    /* Its number of the next message to the peer: one sequence for all meshes, as contexts are used again. */
    uint32_t next_id;
} mc_peer_t; /* a connection; transports append their own fields */

/*
 * send and recv return OK when complete at once (`io` is unused), IN_PROGRESS when `io` will be
 * appended to its queue later, or an error. A message of an unexpected length is an error.
 */
typedef struct {
    /* `address` is that of the peer's transport. Connections live until the transport is closed. */
    int (*connect)(mc_transport_t *t, int32_t rank, const void *address, mc_peer_t **peer);
    /* Takes what a later connect needs of the peer's process, which may have become another user's by then. It may fail:
     * connect tries again. NULL: a connect needs nothing. */
    void (*hold)(mc_transport_t *t, int32_t rank, const void *address);
    int (*send)(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io);
    int (*recv)(mc_peer_t *peer, const mc_message_t *message, mc_io_t *io);
    /* The message goes to the consumer, whose operands are ready; the message's spans are unused.
     * NULL: the message is received into memory and reduced from there. */
    int (*recv_reduce)(mc_peer_t *peer, const mc_message_t *message, const mc_consumer_t *consumer,
                       mc_io_t *io);
    /* Passes headers to the listener, first those that are here already: in the order in which each
     * rank sent them, without a posted receive. Called once. NULL: there are no tagged messages. */
    int (*listen)(mc_transport_t *t, const mc_listener_t *listener);
    /* Begins a flush, if none is in flight: complete when nothing sent so far, by any request, needs
     * more progress by this rank, which may then compute. IN_PROGRESS: the caller polls it with
     * flushed() until that returns something else. NULL: a completed send needs no more progress. */
    int (*flush)(mc_transport_t *t);
    int (*flushed)(mc_transport_t *t);
    /* Wakes sleeping peers that messages were sent to since the last call; called when all sends
     * that can start have started. NULL: each send wakes its peer. */
    void (*wake)(mc_transport_t *t);
    /* Moves whatever can move; returns the number of events. */
    uint32_t (*progress)(mc_transport_t *t);
    /* OK: `fd` becomes readable at the next event. IN_PROGRESS: there are events already. */
    int (*arm)(mc_transport_t *t);
    /* Called by a rank that has waited for long: an error if a peer it waits for is gone. NULL:
     * the transport cannot tell. */
    int (*check)(mc_transport_t *t);
    /* Called by a rank that has waited for long: is there a message from any rank, which no receive has taken, of
     * the operation of this tag and of another call (mc_tag_differs)? Tells its tag. */
    bool (*differs)(mc_transport_t *t, uint64_t tag, uint64_t *other);
    /* Called when this rank's mesh failed, with the reason. Operations in flight stay
     * incomplete, and only writer() and close() follow. After it returns, a peer that reads one of
     * this rank's messages gets an error, and none begins to write to one. NULL: peers do neither unless
     * this rank makes progress. */
    void (*abandon)(mc_transport_t *t, const char *why);
    /* After abandon: a rank that may still be writing to a message of this one, as it had begun before; -1: none is.
     * NULL: none ever is. */
    int32_t (*writer)(mc_transport_t *t);
    /* Frees the transport and its connections, once all operations are complete on all ranks. */
    void (*close)(mc_transport_t *t);
} mc_transport_ops_t;

/* The address of a transport to other machines begins with so many bytes: a text that says where its rank is. */
enum { MC_TRANSPORT_WHERE = 64 };

struct mc_transport {
    const mc_transport_ops_t *ops;
    const int32_t *known_as; /* by rank: its number in error texts; NULL: the same */
    const void *address;     /* to hand to the peers */
    size_t address_bytes;
    size_t address_least; /* that a peer's has; 0: as many as this one */
    bool greets;          /* both ends greet a new connection before a plan uses it */
    int fd;               /* -1: the transport can only be polled */
    bool moves_device_memory;
    bool streams; /* a send completes once the wire has accepted it, without the receiver */
    bool
        listens_connected; /* only headers of ranks that this one has connected to reach listen() */
    uint32_t place;        /* among those that its owner polls, as a bit */
    uint32_t wanted;       /* receives from any rank that the listener's owner awaits */
    bool pulls; /* one end moves large messages through the kernel, page by page of the other end */
    /* The longest message that its sender copies to shared memory; 0: no message is copied. */
    size_t eager;
};

static inline int32_t mc_transport_known_as(const mc_transport_t *t, int32_t rank)
{
    return t->known_as ? t->known_as[rank] : rank;
}

#endif
