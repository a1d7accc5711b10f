/*
 * The executor runs a bound plan over connections: steps start when what they depend on is done,
 * the first in program order first; messages of a pair and phase in the order of their numbers, a
 * bounded window of them at once in each direction. Phases do not wait for each other there: one
 * segment's allgather would hold up the next one's reduce-scatter to the same peer. Nothing is
 * allocated from start to end.
 *
 * Messages to be reduced come into slots of staging. They are awaited before their operand is
 * ready, and slots are given out in program order: the first step that is not done has one, so that
 * slots never stop a schedule that goes through in program order.
 */
#ifndef MC_RUNTIME_EXECUTOR_H
#define MC_RUNTIME_EXECUTOR_H

#include "runtime/bind/binding.h"
#include "runtime/execute/timeline.h"

/* One peer, phase and direction. */
typedef struct {
    mc_peer_t *peer;
    uint64_t *bytes_sent;    /* counter of the dimension between; NULL: receives */
    uint64_t tag;            /* of message 0 of operation 0 */
    uint32_t first, n;       /* its messages in mc_executor_t.queue, as they are numbered */
    uint32_t next, n_flying; /* the next to start, and how many are under way */
    uint32_t window;
    uint32_t port; /* of sends */
    bool streams;  /* a send's transport does */
    /* credits (credit.h): the messages from `open` on have one, `credited` of the lane's are settled, and the first
     * `go` sends may go, of receives all */
    uint32_t open, credited, go;
    uint32_t owed;  /* of receives: credits that are due and not given yet */
    bool crediting; /* one is under way, or awaited */
    mc_io_t credit;
} mc_lane_t;

/*
 * What sends of one dimension go through. Where sends stream, one goes at a time, the first in program
 * order first: two peers' messages at once would share the wire, and the first arrive as late as the
 * second. Where a send waits for its receiver, only the peer's window holds it back.
 */
typedef struct {
    mc_transport_t *transport;
    uint32_t n_flying;
    void *flush; /* under way; NULL: none */
} mc_port_t;

typedef struct {
    mc_io_t io;
    mc_message_t
        message;      /* as bound, without the operation's number; what it says of sends: alike.h */
    mc_span_t staged; /* where a message to be reduced comes to; at is NULL without a slot */
    uint32_t waits, at_first; /* for so many steps and messages; and when a run begins */
    uint32_t lane;
    bool is_message, is_staged;
    bool is_last;   /* of the plan's messages to, or from, its peer */
    bool held;      /* a send that waits for another's message too (hold.h) */
    bool kept;      /* a send that waits until an earlier one has come (credits) */
    uint32_t span;  /* of a message that is reduced as it comes, or a copy: where it has got to */
    size_t reduced; /* bytes of that span */
    uint32_t frees; /* of a receive: a send that is held for its message, as step + 1; 0: none */
    uint32_t also;  /* of a send that is held: the next one for the same message, alike */
    /* credits: the first that waits for this message, as step + 1; of one that waits, the next for the same */
    uint32_t first, next;
} mc_task_t;

typedef enum { MC_IDLE, MC_RUNNING, MC_FLUSHING, MC_FAILED } mc_phase_state_t;

typedef struct {
    const mc_plan_t *plan;
    const mc_binding_t *binding;
    mc_phase_state_t state;
    int status;
    uint64_t operation;          /* of this run, as part of its tags */
    uint32_t n_left;             /* steps, then flushes */
    mc_task_t *task;             /* by step */
    mc_lane_t *lane;             /* per peer: receives, sends */
    uint32_t n_lanes, n_sending; /* those that send come first */
    uint32_t *queue;             /* steps by lane */
    uint32_t *heap;              /* local steps that are ready, the first in program order on top */
    uint32_t n_heap;
    uint32_t *staged; /* steps that want a slot, in program order */
    uint32_t n_staged, next_staged;
    uint32_t *slot; /* free ones */
    uint32_t n_slots, n_free;
    char *staging;
    size_t slot_bytes;
    mc_port_t port[MC_MAX_DIMS];
    uint32_t n_ports;
    int32_t wire, beside; /* as in mc_wiring_t */
    size_t window;        /* alike */
    mc_io_queue_t finished;
    mc_io_queue_t credits;   /* of lanes, that have come or gone */
    uint32_t n_credits;      /* of a run, both ways */
    uint32_t asked_first;    /* a receive that is asked for at once, as step + 1 */
    bool shared;             /* other requests run on the handle */
    uint32_t looks;          /* of a flush, so many in which nothing happened while others ran */
    uint32_t looks_awake;    /* those a waiting rank makes before it sleeps */
    mc_timeline_t *timeline; /* of this plan's steps; NULL: nothing is recorded */
} mc_executor_t;

/* Connections by plan->peer, and the counters their bytes are added to. */
typedef struct {
    int32_t rank;
    /* the innermost dimension whose transport streams: ranks inside of it share a port; and how many parts of
     * a split mesh share them */
    int32_t wire, beside;
    size_t window; /* bytes that those may have on the way together (mesh/link.h) */
    bool crowded;  /* ranks share cores */
    mc_peer_t *const *peer;
    uint64_t *const *bytes_sent;
} mc_wiring_t;

int mc_executor_init(mc_executor_t *x, const mc_plan_t *plan, const mc_wiring_t *wiring);
void mc_executor_free(mc_executor_t *x);

/* Bytes of staging for a measured binding; the binding is used from here on. */
size_t mc_executor_measure(mc_executor_t *x, const mc_binding_t *binding);
/* After each (re)binding; `staging` is aligned. */
void mc_executor_bind(mc_executor_t *x, char *staging);

/* `operation`: this run's number, the same on all ranks. */
int mc_executor_start(mc_executor_t *x, uint32_t operation);
/* Goes on with what the transports have finished. OK when complete, IN_PROGRESS, or an error. */
int mc_executor_advance(mc_executor_t *x);
/* Ends the run: no step and no message starts any more, and none completes. */
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
/* Bytes that each of the ranks that share this one's port may have on its way in a phase (hold.h). */
size_t mc_executor_ahead(const mc_executor_t *x, uint8_t phase);
static inline bool mc_executor_has_work(const mc_executor_t *x)
{
    return x->finished.first || x->credits.first || x->n_heap > 0;
}

#endif
