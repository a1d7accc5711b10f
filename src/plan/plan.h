/*
 * Plans: what one rank does in one collective, as steps over chunks. A plan contains no bytes,
 * buffers or transports: count, datatype and addresses are bound when it is started.
 */
#ifndef MC_PLAN_PLAN_H
#define MC_PLAN_PLAN_H

#include "mesh/tile.h"

typedef enum {
    MC_OP_SEND,          /* send src[first…] to peer */
    MC_OP_RECV,          /* dst[to…] = message from peer */
    MC_OP_RECV_REDUCE,   /* dst[to…] = src[first…] (+) message from peer */
    MC_OP_COPY,          /* dst[to…] = src[first…] */
    MC_OP_REDUCE,        /* dst[to…] = src[first…] (+) dst[to…] */
    MC_OP_REDUCE_BEHIND, /* dst[to…] = dst[to…] (+) src[first…] */
    MC_OPS
} mc_op_t;

/* The message is the left operand: dst[to…] = message from peer (+) src[first…]. */
enum { MC_MESSAGE_FIRST = 1 };

/* IN is read only; OUT and SCRATCH are written. Chunk c of IN and chunk c of OUT may be the same
 * memory (in place). SCRATCH has chunks of its own: [0, n_chunks) for the vector's, and a second
 * half [n_chunks, 2 n_chunks), called aside; chunk c of either is as long as the vector's chunk c %
 * n_chunks. In an alltoall that gathers blocks along lines it holds pairs instead
 * (plan/pairs.h). */
typedef enum { MC_IN, MC_OUT, MC_SCRATCH, MC_BUFFERS } mc_buffer_t;

typedef struct {
    uint8_t op;               /* mc_op_t */
    uint8_t src : 4, dst : 4; /* mc_buffer_t */
    uint8_t flags;            /* MC_MESSAGE_FIRST of a receive-reduce, else 0 */
    uint8_t phase; /* phase of the strategy, from 0; copies that settle a segment have its last */
    int32_t peer;  /* a rank; -1 for a local step */
    /* The chunks read: nrun runs of `run`, `stride` apart, from `first` on; and the first chunk written, in the
     * same runs. What a send writes and a receive reads is a message: `to` of a send and `first` of a receive
     * is the ring of its chunks. */
    uint32_t first, run, nrun, stride, to;
    uint32_t seq; /* ordinal of the message among those of this rank to (or from) the peer */
} mc_step_t;
_Static_assert(sizeof(mc_step_t) == 32, "a step is 32 bytes");

/*
 * Ranks may also run their plans in program order: each runs its steps one after the other, as they
 * stand, without their dependencies. That completes if a rank can send so many messages to a peer
 * before the peer takes the first of them (plan/verify proves it). An executor that runs plans so
 * has at least as many slots for each pair of ranks and direction.
 */
enum { MC_PROGRAM_WINDOW = 2 };

/* How much of the vector a buffer of this rank holds. */
typedef enum {
    MC_HOLDS_NONE,
    MC_HOLDS_HOME, /* the chunks whose home is this rank, one block */
    MC_HOLDS_WHOLE
} mc_holds_t;

/* The traffic pattern of a phase, for flow control: it bounds the bytes in flight. */
enum { MC_PLAN_PHASES = 6 * MC_MAX_DIMS };
typedef struct {
    uint16_t senders;   /* ranks that send to one rank and receive nothing from it; 0: not known */
    uint16_t receivers; /* ranks that receive from one rank and send nothing to it; 0: not known */
    uint8_t rooted;     /* dimensions along which a single rank sends, one bit each */
    uint8_t moves;      /* the collective of the phase, meshcoll_collective_t */
    bool passes_on;     /* along a chain, whose next rank sends nothing back */
} mc_traffic_t;

/* A sealed plan is immutable and one allocation. */
typedef struct {
    mc_layout_t layout;
    meshcoll_collective_t collective;
    int32_t rank, root;
    mc_holds_t in, out;
    uint32_t n_chunks, n_steps, n_edges, n_peers;
    mc_traffic_t traffic[MC_PLAN_PHASES]; /* by phase */
    uint32_t scratch_first, n_scratch;    /* the range of SCRATCH in use */
    /* with pairs: the number of parts of SCRATCH, and the pairs in a part per chunk of the vector;
     * 0: no pairs */
    uint32_t parts, depth;
    const uint64_t *empty;           /* a bit per chunk of SCRATCH in use: empty? NULL: none is */
    const mc_step_t *step;           /* program order is a topological order */
    const uint32_t *succ_off, *succ; /* the successors of step i: succ[succ_off[i]…succ_off[i+1]) */
    const uint32_t *n_pred;
    const int32_t *peer; /* the ranks this plan exchanges messages with, ascending */
    size_t bytes;        /* size of the allocation */
} mc_plan_t;

void mc_plan_free(mc_plan_t *plan); /* NULL is allowed */

/* The index in plan->peer of the first rank that is not below this one; n_peers: there is none. */
uint32_t mc_plan_peer(const mc_plan_t *plan, int32_t rank);

/* Reverses the edges: the predecessors of step i are pred[off[i]…off[i + 1]), ascending. `off` has room for n_steps + 2,
 * `pred` for n_edges. */
void mc_plan_predecessors(const mc_plan_t *plan, uint32_t *off, uint32_t *pred);

/* The chunks of SCRATCH per chunk of the vector in one part; the chunks of a part; the number of
 * parts. */
static inline uint32_t mc_plan_depth(const mc_plan_t *plan)
{
    return plan->depth ? plan->depth : 1;
}
static inline uint32_t mc_plan_part(const mc_plan_t *plan)
{
    return plan->n_chunks * mc_plan_depth(plan);
}
static inline uint32_t mc_plan_parts(const mc_plan_t *plan)
{
    return plan->parts ? plan->parts : 2;
}
/* Returns the segment of a chunk of the vector, or of a part of SCRATCH. */
static inline uint32_t mc_plan_segment(const mc_plan_t *plan, mc_buffer_t buffer, uint32_t chunk)
{
    const uint32_t depth = buffer == MC_SCRATCH ? mc_plan_depth(plan) : 1;
    return chunk % (plan->n_chunks * depth) / (plan->layout.per_segment * depth);
}
/* Does the chunk belong to an absent rank? It is then empty. (Block collectives only.) */
static inline bool mc_plan_absent(const mc_plan_t *plan, mc_buffer_t buffer, uint32_t chunk)
{
    if (buffer != MC_SCRATCH || !plan->depth)
        return mc_layout_absent(&plan->layout, chunk % plan->n_chunks);
    const uint32_t at = chunk - plan->scratch_first;
    return plan->empty && (at >= plan->n_scratch || (plan->empty[at / 64] >> at % 64 & 1));
}

/* Names of ops and buffers as explain prints them; "?" when out of range. */
const char *mc_op_name(mc_op_t op);
const char *mc_buffer_name(mc_buffer_t buffer);
static inline bool mc_op_sends(mc_op_t op)
{
    return op == MC_OP_SEND;
}
static inline bool mc_op_receives(mc_op_t op)
{
    return op == MC_OP_RECV || op == MC_OP_RECV_REDUCE;
}
/* Does the step read src[first…]? write dst[to…]? */
static inline bool mc_op_reads(mc_op_t op)
{
    return op != MC_OP_RECV;
}
static inline bool mc_op_writes(mc_op_t op)
{
    return op != MC_OP_SEND;
}
/* Does it add to the value in dst[to…]? */
static inline bool mc_op_adds(mc_op_t op)
{
    return op == MC_OP_REDUCE || op == MC_OP_REDUCE_BEHIND;
}
/* The chunks a step reads, and those it writes. */
static inline mc_range_t mc_step_from(const mc_step_t *s)
{
    const uint32_t ring = s->op == MC_OP_SEND ? s->to : 0;
    return (mc_range_t){s->first, s->run, s->nrun, s->stride, ring};
}
static inline mc_range_t mc_step_to(const mc_step_t *s)
{
    const uint32_t ring = s->op == MC_OP_RECV ? s->first : 0;
    return (mc_range_t){s->to, s->run, s->nrun, s->stride, ring};
}
/* Does the step copy IN to the same chunks of OUT? In place it moves nothing, and out of place it
 * overwrites nothing that others read in IN. */
static inline bool mc_step_copies_own(const mc_step_t *s)
{
    return s->op == MC_OP_COPY && s->src == MC_IN && s->dst == MC_OUT && s->first == s->to;
}

#endif
