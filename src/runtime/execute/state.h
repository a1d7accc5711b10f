/*
 * The state of a run: its steps as tasks, its messages as lanes, and the ports that lanes share. Pacing and the
 * executor work on it.
 */
#ifndef MC_RUNTIME_STATE_H
#define MC_RUNTIME_STATE_H

#include "compose/pace/limits.h"
#include "runtime/bind/binding.h"

typedef struct mc_timeline mc_timeline_t;

/* The messages of one peer, phase and direction. */
typedef struct {
    mc_peer_t *peer;
    uint64_t *bytes_sent;       /* counter of the dimension to the peer; NULL: receives */
    uint64_t tag, credit_tag;   /* of operation 0, without the digest; and of its credits */
    uint32_t first, n;          /* its messages in mc_executor_t.queue, by number */
    uint32_t next, n_in_flight; /* the next to start, and how many are in flight */
    uint32_t window;
    uint32_t port; /* of sends: index into mc_executor_t.port */
    bool streams;  /* of sends: see mc_transport_t */
    /* Credits (pace.h): the first `n_free` messages need none, the first `n_credited` need none or
     * have theirs, and the first `n_allowed` may start (of receives all). */
    uint32_t n_free, n_credited, n_allowed;
    uint32_t n_due;        /* of receives: credits that are due but not sent */
    bool credit_in_flight; /* or its receive is posted */
    mc_io_t credit;
} mc_lane_t;

/*
 * What the sends of one transport share. Where sends stream, one goes at a time, the first in
 * program order first: two at once would share the wire, and the first would arrive as late as the
 * second. Where a send waits for its receiver, only its lane's window limits it.
 */
typedef struct {
    mc_transport_t *transport;
    uint32_t n_in_flight;
} mc_port_t;

/* Sends that wait for a receive; sends that wait until an earlier one is confirmed, and receives that are
 * requested when an earlier one has come (pace.h). */
typedef enum { MC_BY_WINDOW, MC_BY_CREDIT, MC_PACE_RULES } mc_pace_t;

typedef struct {
    mc_io_t io;
    /* As bound, except for the operation's number; flags of sends: mc_hints_find. */
    mc_message_t message;
    mc_span_t staged;         /* slot for a message to be reduced; at is NULL without one */
    uint32_t waits, at_first; /* steps and messages it waits for: now, and at the start of a run */
    uint32_t lane;
    bool is_message, is_staged;
    bool is_last;                  /* of the plan's messages to, or from, its peer */
    bool waits_for[MC_PACE_RULES]; /* of a send */
    uint32_t span;  /* position in a copy, or in a message that is reduced as it arrives */
    size_t reduced; /* bytes done of that span */
    /* Pacing, as step + 1, 0: none: the first task that waits for this message, and of a waiting task
     * the next that waits for the same message. */
    uint32_t first[MC_PACE_RULES], next[MC_PACE_RULES];
} mc_task_t;
_Static_assert(sizeof(mc_task_t) == 256, "four cache lines, addressed by a shift");

/* NEW: idle, and its connections or its binding may not be ready. PENDING: started while they were
 * not; the run begins as soon as they are. */
typedef enum { MC_IDLE, MC_NEW, MC_PENDING, MC_RUNNING, MC_FLUSHING, MC_FAILED } mc_run_state_t;

typedef struct {
    const mc_plan_t *plan;
    const mc_binding_t *binding;
    mc_run_state_t state;
    int status;
    bool bound, held;
    /* A run is pending until *reached >= awaited, modulo 2^32; NULL: at once. */
    const uint32_t *reached;
    uint32_t awaited;
    mc_list_t *reaching;         /* where it waits for that */
    uint32_t n_connected;        /* lanes whose connections are known to be greeted */
    uint32_t pending;            /* number of the pending run */
    uint32_t digest;             /* of what its runs do; to be set before the binding */
    uint32_t tag_digest;         /* and of how they do it, in tags */
    uint64_t operation;          /* of this run, as a part of tags */
    uint32_t n_left;             /* steps and credits */
    mc_task_t *task;             /* by step */
    mc_lane_t *lane;             /* one per peer, phase and direction */
    uint32_t n_lanes, n_sending; /* lanes that send come first */
    uint32_t *queue;             /* steps by lane */
    uint32_t *heap;              /* local steps that are ready; the first in program order on top */
    uint32_t n_heap;
    uint32_t *staged; /* steps that need a slot, in program order */
    uint32_t n_staged, next_staged;
    uint32_t *slot; /* free ones */
    uint32_t n_slots, n_free;
    char *staging;
    size_t slot_bytes;
    mc_port_t port[MC_MAX_DIMS];
    uint32_t n_ports;
    uint32_t flushes; /* transports to flush at the end, by their places */
    mc_pacing_t pacing;
    mc_io_queue_t finished;
    mc_io_queue_t credits;   /* of lanes: credits that have arrived or are sent */
    uint32_t n_credits;      /* of a run, both directions */
    uint32_t first_request;  /* first message to request at the start, as step + 1; 0: none */
    mc_timeline_t *timeline; /* of this plan's steps; NULL: nothing is recorded */
} mc_executor_t;

/* What a pending run waits for may be there: it is to be advanced at the next poll. */
static inline void mc_executor_wake(mc_executor_t *x)
{
    if (x->state == MC_PENDING && x->finished.owner)
        mc_ready_mark(x->finished.owner);
}

/* Ends the run with an error; the first one stays. No step and no message starts or completes afterwards. */
void mc_executor_fail(mc_executor_t *x, int status);

#endif
