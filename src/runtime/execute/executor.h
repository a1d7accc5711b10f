/*
 * Runs a bound plan over connections. A step starts when its dependencies are complete, the first
 * in program order first. Messages of a pair and phase start in the order of their numbers, with a
 * bounded window of them in flight per direction. Phases have lanes of their own: otherwise one
 * segment's allgather would delay the next one's reduce-scatter to the same peer. Nothing is
 * allocated between start and end.
 *
 * A message to be reduced is reduced piece by piece as it arrives, if the transport can do that and
 * no element is cut. Otherwise it is received into a slot of staging memory, possibly before its
 * operand is ready. Slots are assigned in program order, so the first incomplete step has one:
 * slots never block a schedule that completes in program order.
 */
#ifndef MC_RUNTIME_EXECUTOR_H
#define MC_RUNTIME_EXECUTOR_H

#include "runtime/bind/binding.h"
#include "runtime/execute/timeline.h"

/* The messages of one peer, phase and direction. */
typedef struct {
    mc_peer_t *peer;
    uint64_t *bytes_sent;    /* counter of the dimension to the peer; NULL: receives */
    uint64_t tag;            /* of message 0 of operation 0 */
    uint32_t first, n;       /* its messages in mc_executor_t.queue, by number */
    uint32_t next, n_flying; /* the next to start, and how many are in flight */
    uint32_t window;
    uint32_t port; /* of sends: index into mc_executor_t.port */
    bool streams;  /* of sends: see mc_transport_t */
    /* Credits (credit.h): messages from `open` on have one, those before `credited` have theirs,
     * and the first `go` messages may start (of receives all). */
    uint32_t open, credited, go;
    uint32_t owed;  /* of receives: credits that are due but not sent */
    bool crediting; /* a credit is in flight, or its receive is posted */
    mc_io_t credit;
} mc_lane_t;

/*
 * What the sends of one transport share. Where sends stream, one goes at a time, the first in
 * program order first: two at once would share the wire, and the first would arrive as late as the
 * second. Where a send waits for its receiver, only its lane's window limits it.
 */
typedef struct {
    mc_transport_t *transport;
    uint32_t n_flying;
    void *flush; /* in flight; NULL: none */
} mc_port_t;

typedef struct {
    mc_io_t io;
    /* As bound, except for the operation's number; flags of sends: alike.h. */
    mc_message_t message;
    mc_span_t staged;         /* slot for a message to be reduced; at is NULL without one */
    uint32_t waits, at_first; /* steps and messages it waits for: now, and at the start of a run */
    uint32_t lane;
    bool is_message, is_staged;
    bool is_last;   /* of the plan's messages to, or from, its peer */
    bool held;      /* a send that also waits for a message from a peer (hold.h) */
    bool kept;      /* a send that waits for the credit of an earlier one */
    uint32_t span;  /* position in a copy, or in a message that is reduced as it arrives */
    size_t reduced; /* bytes done of that span */
    uint32_t frees; /* of a receive: first send that is held for it, as step + 1; 0: none */
    uint32_t also;  /* of a held send: the next one held for the same receive */
    /* Credits: the first task that waits for this message, as step + 1; of a waiting task, the
     * next that waits for the same message. */
    uint32_t first, next;
} mc_task_t;

typedef enum { MC_IDLE, MC_RUNNING, MC_FLUSHING, MC_FAILED } mc_phase_state_t;

typedef struct {
    const mc_plan_t *plan;
    const mc_binding_t *binding;
    mc_phase_state_t state;
    int status;
    uint64_t operation;          /* of this run, as a part of tags */
    uint32_t n_left;             /* steps and credits, then flushes */
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
    int32_t wire, beside; /* as in mc_wiring_t */
    size_t window;        /* as in mc_wiring_t */
    mc_io_queue_t finished;
    mc_io_queue_t credits;   /* of lanes: credits that have arrived or are sent */
    uint32_t n_credits;      /* of a run, both directions */
    uint32_t asked_first;    /* first message to request at the start, as step + 1; 0: none */
    bool shared;             /* other requests run on the handle */
    uint32_t looks;          /* of a flush: polls without an event while other requests ran */
    uint32_t looks_awake;    /* polls of a waiting rank before it sleeps */
    mc_timeline_t *timeline; /* of this plan's steps; NULL: nothing is recorded */
} mc_executor_t;

/* Connections by plan->peer, and the counters that their bytes are added to. */
typedef struct {
    int32_t rank;
    /* Innermost dimension whose transport streams: ranks that differ further in only share a
     * port. `beside`: how many parts of a split mesh share each port. */
    int32_t wire, beside;
    size_t window; /* bytes that all ranks of a port may have in flight (mesh/link.h) */
    bool crowded;  /* ranks share cores */
    mc_peer_t *const *peer;
    uint64_t *const *bytes_sent;
} mc_wiring_t;

int mc_executor_init(mc_executor_t *x, const mc_plan_t *plan, const mc_wiring_t *wiring);
void mc_executor_free(mc_executor_t *x);

/* Returns the bytes of staging for a measured binding, which is used from here on. */
size_t mc_executor_measure(mc_executor_t *x, const mc_binding_t *binding);
/* To call after each binding or rebinding. `staging` is aligned. */
void mc_executor_bind(mc_executor_t *x, char *staging);

/* `operation`: number of this run, the same on all ranks. */
int mc_executor_start(mc_executor_t *x, uint32_t operation);
/* Continues with what the transports have completed. OK when complete, IN_PROGRESS, or an error. */
int mc_executor_advance(mc_executor_t *x);
/* Ends the run with an error; the first one stays. No step and no message starts or completes afterwards. */
static inline void mc_executor_fail(mc_executor_t *x, int status)
{
    if (x->state != MC_FAILED)
        x->status = status;
    x->state = MC_FAILED;
    for (mc_lane_t *lane = x->lane; lane < x->lane + x->n_lanes; lane++)
        lane->go = lane->next;
    x->finished = x->credits = (mc_io_queue_t){0};
    x->n_heap = 0;
}
/* Bytes that each rank of a port may have in flight in a phase (hold.h). */
size_t mc_executor_ahead(const mc_executor_t *x, uint8_t phase);
static inline bool mc_executor_has_work(const mc_executor_t *x)
{
    return x->finished.first || x->credits.first || x->n_heap > 0;
}

#endif
