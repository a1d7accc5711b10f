/*
 * Plans: what one rank does in one collective, as steps over chunks. A plan knows no bytes, buffers
 * or transports; count, datatype and addresses bind when it is started.
 */
#ifndef MC_PLAN_PLAN_H
#define MC_PLAN_PLAN_H

#include "mesh/tile.h"

typedef enum {
    MC_OP_SEND,          /* src[first…] goes to peer */
    MC_OP_RECV,          /* dst[to…] = message from peer */
    MC_OP_RECV_REDUCE,   /* dst[to…] = src[first…] (+) message from peer */
    MC_OP_COPY,          /* dst[to…] = src[first…] */
    MC_OP_REDUCE,        /* dst[to…] = src[first…] (+) dst[to…] */
    MC_OP_REDUCE_BEHIND, /* dst[to…] = dst[to…] (+) src[first…] */
    MC_OPS
} mc_op_t;

/* The message is the first operand: dst[to…] = message from peer (+) src[first…]. */
enum { MC_MESSAGE_FIRST = 1 };

/* IN is read only. OUT and SCRATCH are written. Chunk c of IN and chunk c of OUT may be the same
 * memory (in place). SCRATCH has chunks of its own: [0, n_chunks) as the vector's, and
 * [n_chunks, 2 n_chunks) aside, each as long as the vector's chunk of the same number modulo. Where an
 * alltoall's blocks come together in lines, it has pairs instead (plan/pairs.h). */
typedef enum { MC_IN, MC_OUT, MC_SCRATCH, MC_BUFFERS } mc_buffer_t;

typedef struct {
    uint8_t op;               /* mc_op_t */
    uint8_t src : 4, dst : 4; /* mc_buffer_t */
    uint8_t flags;            /* of a receive-reduce MC_MESSAGE_FIRST */
    uint8_t phase; /* of the strategy, from 0; what settles a segment is its last one's */
    int32_t peer;  /* rank; -1 when local */
    uint32_t first, run, nrun,
        stride;   /* chunks: nrun runs of `run`, `stride` apart, from `first` */
    uint32_t to;  /* first chunk written, in the same shape */
    uint32_t seq; /* ordinal among this rank's messages to (or from) the peer */
} mc_step_t;
_Static_assert(sizeof(mc_step_t) == 32, "a step is 32 bytes");

/* How much of the vector a buffer of this rank holds. */
typedef enum {
    MC_HOLDS_NONE,
    MC_HOLDS_HOME, /* the chunks at home on this rank, one block */
    MC_HOLDS_WHOLE
} mc_holds_t;

/* What the ranks of a phase do at once, for those who bound what is on its way. */
enum { MC_PLAN_PHASES = 6 * MC_MAX_DIMS };
typedef struct {
    uint16_t senders;   /* to one rank, without hearing from it; 0: not known */
    uint16_t receivers; /* from one rank, which does not hear from them, alike */
    uint8_t rooted; /* dimensions along which one rank alone has something to send, a bit each */
    uint8_t moves;  /* the phase's own collective, meshcoll_collective_t */
    bool passes_on; /* along a chain, from whose next rank nothing comes back */
} mc_traffic_t;

/* Immutable once sealed; one allocation. */
typedef struct {
    mc_layout_t layout;
    meshcoll_collective_t collective;
    int32_t rank, root;
    mc_holds_t in, out;
    uint32_t n_chunks, n_steps, n_edges, n_peers;
    mc_traffic_t traffic[MC_PLAN_PHASES]; /* by phase */
    uint32_t scratch_first, n_scratch;    /* the chunks of SCRATCH in use: one range */
    /* of pairs: parts of SCRATCH, each of so many for each of the vector's chunks; 0: there are none */
    uint32_t parts, depth;
    const uint64_t *empty;           /* a bit for each in use: is it of nobody? NULL: none is */
    const mc_step_t *step;           /* program order is a topological order */
    const uint32_t *succ_off, *succ; /* successors of step i: succ[succ_off[i]…succ_off[i+1]) */
    const uint32_t *n_pred;
    const int32_t *peer; /* ranks this plan talks to, ascending */
    size_t bytes;        /* of the allocation */
} mc_plan_t;

void mc_plan_free(mc_plan_t *plan); /* NULL is allowed */

/* Chunks of SCRATCH for each of the vector's; those of one of its parts; and its parts. */
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
/* Whose chunk of the vector, or of a part of SCRATCH, it is. */
static inline uint32_t mc_plan_segment(const mc_plan_t *plan, mc_buffer_t buffer, uint32_t chunk)
{
    const uint32_t depth = buffer == MC_SCRATCH ? mc_plan_depth(plan) : 1;
    return chunk % (plan->n_chunks * depth) / (plan->layout.per_segment * depth);
}
/* Is it of a rank that is not there, and empty? (Of a block collective only.) */
static inline bool mc_plan_absent(const mc_plan_t *plan, mc_buffer_t buffer, uint32_t chunk)
{
    if (buffer != MC_SCRATCH || !plan->depth)
        return mc_layout_absent(&plan->layout, chunk % plan->n_chunks);
    const uint32_t at = chunk - plan->scratch_first;
    return plan->empty && (at >= plan->n_scratch || (plan->empty[at / 64] >> at % 64 & 1));
}

/* Names of ops and buffers as explain prints them. */
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
/* Does it add to what stands at dst[to…]? */
static inline bool mc_op_adds(mc_op_t op)
{
    return op == MC_OP_REDUCE || op == MC_OP_REDUCE_BEHIND;
}
/* The chunks a step reads, and those it writes. */
static inline mc_range_t mc_step_from(const mc_step_t *s)
{
    return (mc_range_t){s->first, s->run, s->nrun, s->stride};
}
static inline mc_range_t mc_step_to(const mc_step_t *s)
{
    return (mc_range_t){s->to, s->run, s->nrun, s->stride};
}
/* A copy from IN to the same chunks of OUT: in place it moves nothing, and out of place it writes over nothing that
 * others read of IN. */
static inline bool mc_step_copies_own(const mc_step_t *s)
{
    return s->op == MC_OP_COPY && s->src == MC_IN && s->dst == MC_OUT && s->first == s->to;
}

#endif
