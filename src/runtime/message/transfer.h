/*
 * Tagged messages between two ranks, over the connections of the collectives. A header announces each; those of a pair
 * arrive and are matched in the order in which they were sent. docs/dev/runtime.md#how-a-message-travels tells of
 * headers, the ways by size, and credits.
 *
 * Each handle of a family has messages of its own; their headers arrive at the job and are passed on by context. A
 * header of a group that this rank has not created yet, or of a handle that has no messages so far, is parked.
 */
#ifndef MC_MESSAGE_TRANSFER_H
#define MC_MESSAGE_TRANSFER_H

#include "runtime/call/request.h"

#include <meshcoll/message.h>

/* A window of eager messages takes 256 KiB of the receiver for each rank that sends. Up to the eager
 * size one more copy costs less than the two messages of a rendezvous. */
enum { MC_MESSAGE_WINDOW = 32, MC_MESSAGE_EAGER = 8 << 10, MC_MESSAGE_INLINE = 80 };

/* The most messages that a peer may let a rank announce at once: far more than any window is extended to. */
#define MC_MESSAGE_CREDITS (UINT32_C(1) << 20)

typedef enum {
    MC_HEADER_EAGER, /* it has the data, or a message with the data follows at once */
    MC_HEADER_NOTE, /* the same, of the library to itself (messages.h): only a receive for notes matches it */
    MC_HEADER_OFFER, /* the data waits at the sender until a receive matches and answers */
    MC_HEADER_READY, /* the answer */
    MC_HEADER_CREDIT /* the sender may announce more messages */
} mc_header_kind_t;

typedef struct {
    uint32_t kind : 32 - MC_CREATION_BITS;
    uint32_t creation : MC_CREATION_BITS; /* of the handle: contexts are used again */
    int32_t tag;
    uint64_t bytes;               /* of the message; of READY: those to send */
    uint32_t id;                  /* number of the data's message, the sender's */
    uint32_t credits;             /* of READY and CREDIT: messages that may be announced now, too */
    char data[MC_MESSAGE_INLINE]; /* of EAGER, where it fits */
} mc_header_t;
_Static_assert(sizeof(mc_header_t) == (size_t)MC_HEADER_BYTES,
               "transports know the length of headers");

/* A message of a transport, and what follows its completion. */
typedef struct mc_part {
    mc_io_t io; /* first */
    mc_span_t span;
    int (*done)(meshcoll_t *h, void *owner);
    void *owner;
} mc_part_t;

/* What flows between this rank and another one. */
typedef struct mc_flow mc_flow_t;

/* A send or a receive. */
typedef struct mc_transfer {
    meshcoll_request_t request; /* first */
    mc_list_node_t node;        /* of the list it is in */
    mc_hashed_t by_key;         /* of a posted receive, and of an offered send */
    uint64_t number;            /* of a posted receive: in the order of calls */
    char *at;
    size_t bytes, element; /* of the buffer; of an element */
    int32_t peer, tag;     /* mesh rank; both may be MESHCOLL_ANY_… of a receive */
    bool sends, is_note;
    mc_flow_t *flow; /* NULL: to itself, or from any rank and not matched yet */
    meshcoll_received_t *received;
    mc_header_t header; /* the announcement, or a receive's READY */
    mc_part_t announce, data;
    uint32_t n_left; /* messages in flight, and a READY that is awaited */
    mc_header_t got; /* of a matched receive: the announcement, and who sent it */
    int32_t from;
    struct mc_arrival *arrival; /* the matched message whose data it waits for; NULL: none */
    mc_flush_t flush;
    char why[160];
} mc_transfer_t;

/* A header that has arrived, and an unexpected message. */
typedef struct mc_arrival {
    mc_list_node_t node; /* first; of the list it is in */
    mc_hashed_t by_key;  /* of unexpected ones */
    int32_t source;      /* -1: no member */
    uint32_t context;    /* of a parked one */
    mc_header_t header;
    char *data; /* of an eager message that was received before, or is longer than, its receive */
    mc_part_t part;
    bool complete;           /* data has arrived */
    mc_transfer_t *consumer; /* the receive that waits for data; NULL: none yet */
    mc_transfer_t *sender;   /* of a message of this rank to itself that waits for its receive */
} mc_arrival_t;

struct mc_flow {
    mc_peer_t *link;
    int32_t rank;
    uint32_t credits;   /* messages that this rank may still announce */
    mc_list_t waiting;  /* sends without a credit */
    mc_hash_t offered;  /* sends without a READY, by id */
    uint32_t n_posted;  /* receives from it without a message */
    uint32_t left;      /* messages that the peer may still announce */
    uint32_t owed;      /* credits to return to it */
    uint32_t extra;     /* credits that extend its window, not to be returned */
    mc_header_t header; /* the CREDIT in flight */
    mc_part_t credit;
    bool crediting;
    uint32_t behind; /* credits to send behind it */
};

struct mc_messages {
    mc_io_queue_t finished;
    mc_flow_t **flow;  /* by mesh rank; NULL: none yet */
    mc_list_t arrived; /* headers that were not looked at yet */
    /* What came without a receive: in the order of arrival, and by source and tag. */
    mc_list_t unexpected;
    mc_hash_t unexpected_by_key;
    /* Receives without a message: by source and tag, and, in the order of their calls, from any source or of any
     * tag. */
    mc_hash_t posted;
    mc_list_t posted_any;
    uint64_t n_posted;   /* so far */
    uint32_t n_from_any; /* of posted_any: from any source */
    mc_list_t flushing;  /* complete but for their flush */
    mc_list_t spare, spare_arrivals;
    bool from_all;         /* connected wherever headers need it */
    meshcoll_t *next_talk; /* next in the job's list */
};

/* Where the headers of a family arrive. */
struct mc_talk {
    meshcoll_t *of_context[MC_CONTEXTS]; /* those with messages */
    meshcoll_t *first;                   /* the same as a list */
    mc_list_t parked;
    int failed; /* status of a listener that failed; its text is in `why` */
    char why[200];
};

/* Lists ----------------------------------------------------------------------------------------- */

/* NULL for NULL. */
static inline mc_arrival_t *mc_arrival_of(mc_list_node_t *n)
{
    return (mc_arrival_t *)n;
}
static inline mc_transfer_t *mc_transfer_of(const mc_list_node_t *n)
{
    return n ? (mc_transfer_t *)((char *)n - offsetof(mc_transfer_t, node)) : NULL;
}
static inline mc_transfer_t *mc_transfer_by_key(const mc_hashed_t *e)
{
    return e ? (mc_transfer_t *)((char *)e - offsetof(mc_transfer_t, by_key)) : NULL;
}

/* State, transfers, arrivals ---------------------------------------------------------------------- */

/* Makes the state of a handle; it does not listen yet. */
int mc_messages_create(meshcoll_t *h);
/* Frees it, once the transports are closed, or it is idle. Transfers that their owners hold stay. */
void mc_messages_free(meshcoll_t *h);
/* Is nothing in flight but what the handle's running requests wait for? */
bool mc_messages_idle(const meshcoll_t *h);

/* A new transfer, in the handle's list of requests; NULL: no memory. */
mc_transfer_t *mc_transfer_take(meshcoll_t *h);
/* To call once it has begun: the handle makes progress on it, unless it is complete. */
void mc_transfer_started(meshcoll_t *h, mc_transfer_t *t);
/* Counts a message of it that was passed to a transport, which returned `status`. */
static inline int mc_transfer_count(mc_transfer_t *t, int status)
{
    t->n_left += status == MESHCOLL_IN_PROGRESS;
    return status < 0 ? status : MESHCOLL_OK;
}
/* Completes it, with an error where the message is longer than its buffer: the next look at the
 * handle ends the request. */
void mc_transfer_complete(const meshcoll_t *h, mc_transfer_t *t);
/* Completes it after a flush of its connection, so that its owner may leave the library. */
int mc_transfer_flush(meshcoll_t *h, mc_transfer_t *t);
/* Looks at those that flush; returns how many are complete. `events`: of the last poll. */
int mc_transfers_flushed(meshcoll_t *h, uint32_t events);

/* NULL: no memory. `m` may be NULL: without spare ones. */
mc_arrival_t *mc_arrival_take(struct mc_messages *m);
void mc_arrival_free(struct mc_messages *m, mc_arrival_t *a);
/* For good, all of a list. */
void mc_arrivals_free(const mc_list_t *list);

/* Finds or makes what flows to and from a rank, and connects to it. */
int mc_flow_find(meshcoll_t *h, int32_t rank, mc_flow_t **flow);

/* Messages of the transport: OK, IN_PROGRESS (part->done follows), or an error. */
int mc_part_send(meshcoll_t *h, const mc_flow_t *flow, mc_part_t *part, uint64_t tag, void *at,
                 size_t bytes);
int mc_part_recv(meshcoll_t *h, const mc_flow_t *flow, mc_part_t *part, uint64_t tag, void *at,
                 size_t bytes);
int mc_header_send(meshcoll_t *h, const mc_flow_t *flow, mc_part_t *part, mc_header_t *header);
/* Counts payload that is sent. */
static inline void mc_flow_count(meshcoll_t *h, const mc_flow_t *flow, size_t bytes)
{
    h->bytes_sent[mc_mesh_level(&h->mesh, h->rank, flow->rank)] += bytes;
}
/* The tag of the data of a message from a rank of the handle. */
static inline uint64_t mc_data_tag(const meshcoll_t *h, int32_t source, uint32_t id)
{
    return mc_tag_data(mc_job_rank(h, source), id) | mc_tag_context(h->context.number);
}

/* send.c: the sender's side. ------------------------------------------------------------------------ */

/* Starts a send to another rank; its flow is set. */
int mc_send_start(meshcoll_t *h, mc_transfer_t *t);
/* A READY has arrived: sends the data that it asks for. */
int mc_send_ready(meshcoll_t *h, mc_flow_t *flow, const mc_header_t *ready);
/* Credits have arrived: announces the sends that waited for them. */
int mc_send_credits(meshcoll_t *h, mc_flow_t *flow, uint32_t n);

/* receive.c: matching, and credits. ------------------------------------------------------------------- */

/* Starts a receive: matches it with the oldest message that fits, or posts it. */
int mc_receive_start(meshcoll_t *h, mc_transfer_t *t);
/* Completes a receive if nothing has matched it yet. */
void mc_receive_cancel(meshcoll_t *h, mc_transfer_t *t);
/* An announcement has arrived: matches it with the oldest receive that fits, or keeps it. */
int mc_receive_arrival(meshcoll_t *h, mc_flow_t *flow, mc_arrival_t *a);
/* Sends to this rank itself. */
int mc_receive_own(meshcoll_t *h, mc_transfer_t *send);

#endif
