/*
 * A route: the lanes of all blocks from one rank to another that is on another machine, as a proxy
 * sees one end of them. Their slots and counters lie in pinned memory of the host, which this
 * rank's kernels use as they use any other lane's, so that a kernel does not know of routes. Where
 * the transport moves it, the slots of an end lie in memory of its GPU instead.
 *
 * One message of a program takes one message of the transport, whatever the number of blocks: it
 * gathers the blocks' parts from their slots, and the other end scatters them to slots of the same
 * numbers. If an end's slots may lie in memory of its GPU, each part is a message of its own, as
 * transports do not gather from there. Lengths follow from the plan, on both ends alike.
 *
 * Sender: when the blocks have raised their flags, the message is sent; when the transport is done
 * with it, their credits are raised. Receiver: a receive is posted to slots that the kernel has
 * left; when it is complete, and kernels see what has arrived, the flags are raised. The receiver
 * acknowledges each second message that its kernel has taken; so at most MC_DEVICE_SLOTS messages
 * of a route wait on the receiver's machine, also where it has not launched its kernel yet.
 *
 * The digest of the call is in the tag. Where a rank's peer has made another call, the receiver's kernel is told by a
 * flag with the peer's digest, as it is within a machine.
 *
 * One thread uses a route; another describes its launches, and kernels use its memory meanwhile.
 */
#ifndef MC_GPU_ROUTE_H
#define MC_GPU_ROUTE_H

#include "base/arena.h"
#include "gpu/program/program.h"
#include "transport/transport.h"

/* A lane's counters, which lie in cache lines of their own: this end writes one, a kernel the other. */
enum { MC_ROUTE_FLAG = 0, MC_ROUTE_CREDIT = 64, MC_ROUTE_LANE = 128 };

typedef struct {
    bool receives;
    bool parts; /* each block's is a message of the transport, on both ends alike */
    uint32_t blocks, slot_bytes;
    void *host;      /* zeroed, of mc_route_host_bytes; stays the caller's */
    uint64_t device; /* the same as kernels see it */
    uint64_t slots;  /* in memory of the GPU, of mc_route_slots_bytes: only with `parts`; 0: behind
                      * the counters in `host` */
    /* Lets kernels see what has arrived in `slots`. NULL: they do when it is complete. */
    int (*flush)(void);
    /* Tags of this end's messages and of the other's, without their numbers: distinct from those of
     * all other routes of both ends. */
    uint64_t own_tag, peers_tag;
} mc_route_params_t;

/* A message of the transport in flight. */
typedef struct {
    mc_io_t io; /* first */
    bool complete;
} mc_route_io_t;

/* A message: its blocks, their parts, and the number that each has in its lane. */
typedef struct {
    uint32_t n, n_messages; /* of the transport: one, or as many as blocks */
    size_t bytes;
    mc_route_io_t *io;
    mc_span_t *span;
    uint32_t *block;
    uint64_t *number; /* counts of messages before it */
    uint32_t digest;  /* of the launch */
} mc_flight_t;

typedef struct mc_route mc_route_t;

/* What is to be moved of a launch: the messages of a lane of its program, which it holds. */
typedef struct mc_route_launch {
    struct mc_route_launch *next;
    mc_route_t *route;
    mc_device_program_t *program;
    uint32_t lane, piece, passes;
    uint32_t digest; /* of the call */
} mc_route_launch_t;

/* Numbers of messages are counted from the first launch on. */
struct mc_route {
    mc_arena_t arena;
    mc_route_params_t params;
    mc_peer_t *peer;                  /* NULL: not connected yet */
    mc_io_queue_t *finished;          /* where the transport puts complete messages */
    mc_route_launch_t *launch, *last; /* in order; the first is being moved */
    uint32_t pass, at;                /* of it: the next message to prepare */
    bool prepared;                    /* flight n_posted is, and waits for its flags */
    uint64_t n_posted;                /* given to the transport */
    uint64_t n_done;                  /* of them: complete, all up to here */
    uint64_t n_taken;                 /* receives: by the kernel */
    uint64_t n_acknowledged;          /* to the sender; by the receiver */
    uint64_t *next;                   /* by block: the count of its lane's messages so far */
    mc_flight_t flight[MC_DEVICE_SLOTS];
    mc_route_io_t acknowledgement;
    bool acknowledges; /* it is in flight */
    /* For the next launches: what was moved, and of that what who launches has taken. */
    _Atomic(mc_route_launch_t *) spent;
    mc_route_launch_t *spare;

    /* The owner's. */
    struct mc_proxy_end *end;
    mc_route_t *sibling, *next_active;
    int32_t rank; /* the peer */
    bool active;
};

/* What a route needs in pinned memory; `slots`: these, too. */
size_t mc_route_host_bytes(uint32_t blocks, uint32_t slot_bytes, bool slots);
size_t mc_route_slots_bytes(uint32_t blocks, uint32_t slot_bytes);
/* ERR_NO_MEMORY. */
int mc_route_make(const mc_route_params_t *params, mc_route_t **route);
/* Nothing is in flight, or the transport is closed. */
void mc_route_free(mc_route_t *route);

/* A block's end of its lane, for kernels; `count` is a zeroed word of theirs. */
mc_device_lane_t mc_route_lane(const mc_route_t *route, uint32_t block, uint64_t *count);

/* To a transport that moves memory of GPUs, where slots lie there. */
void mc_route_connect(mc_route_t *route, mc_peer_t *peer, mc_io_queue_t *finished);
/* Of a lane of a launched program; beside the thread that uses the route. ERR_NO_MEMORY. */
int mc_route_launch(mc_route_t *route, mc_device_program_t *program, uint32_t lane,
                    const mc_device_call_t *call, uint32_t digest, mc_route_launch_t **launch);
void mc_route_launch_free(mc_route_launch_t *launch);
/* Appends it; the route frees it when it has moved it. */
void mc_route_give(mc_route_launch_t *launch);
/* Marks what has finished; an error of the transport, with its sentence. */
int mc_route_finish(mc_io_queue_t *finished);
/* Moves what can move, without waiting; adds the number of events to *moved. */
int mc_route_advance(mc_route_t *route, uint32_t *moved);
/* For routes that nothing has come by for long: tells the kernel where a message of another call lies there. */
void mc_route_check(mc_route_t *route);
/* Has all been moved, taken and acknowledged? */
bool mc_route_is_quiet(const mc_route_t *route);

#endif
