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

#include "runtime/execute/state.h"
#include "runtime/execute/timeline.h"

/* Connections by plan->peer, and the counters that their bytes are added to. */
typedef struct {
    int32_t rank;     /* of the job, as are those of the peers */
    uint32_t context; /* of tags */
    mc_pacing_t pacing;
    bool oversubscribed; /* ranks share cores */
    mc_peer_t *const *peer;
    uint64_t *const *bytes_sent;
} mc_wiring_t;

int mc_executor_init(mc_executor_t *x, const mc_plan_t *plan, const mc_wiring_t *wiring);
void mc_executor_free(mc_executor_t *x);

/* Returns the bytes of staging for a measured binding, which is used from here on. */
size_t mc_executor_measure(mc_executor_t *x, const mc_binding_t *binding);
/* To call after each binding or rebinding. `staging` is aligned. */
void mc_executor_bind(mc_executor_t *x, char *staging);

/* The binding no longer holds: a run started from now on is pending until mc_executor_bind. */
static inline void mc_executor_unbind(mc_executor_t *x)
{
    x->bound = false;
    x->state = x->state == MC_IDLE ? MC_NEW : x->state;
}

/* A run started from now on is pending until it is let go. */
static inline void mc_executor_hold(mc_executor_t *x)
{
    x->held = true;
    x->state = x->state == MC_IDLE ? MC_NEW : x->state;
}

static inline void mc_executor_let_go(mc_executor_t *x)
{
    x->held = false;
    mc_executor_wake(x);
}

/* A run started from now on is pending until *reached, which only grows, has come to `awaited`. Its owner waits
 * in the list `reaching` meanwhile, and is advanced then. */
static inline void mc_executor_await(mc_executor_t *x, const uint32_t *reached, uint32_t awaited,
                                     mc_list_t *reaching)
{
    x->reached = reached;
    x->awaited = awaited;
    x->reaching = reaching;
    x->state = x->state == MC_IDLE ? MC_NEW : x->state;
}
static inline bool mc_executor_has_reached(const mc_executor_t *x)
{
    return !x->reached || (int32_t)(*x->reached - x->awaited) >= 0;
}

/* `operation`: number of this run, the same on all ranks. Never waits: the run is pending while a
 * connection is not greeted, the binding is missing, or it is held. Returns as mc_executor_advance does. */
int mc_executor_start(mc_executor_t *x, uint32_t operation);
/* Continues with what the transports have completed. OK when complete, IN_PROGRESS, or an error. Where its transports
 * flush, the run is FLUSHING once its messages are complete, and its owner ends it by mc_executor_end. */
int mc_executor_advance(mc_executor_t *x);
void mc_executor_end(mc_executor_t *x);
static inline bool mc_executor_has_work(const mc_executor_t *x)
{
    return x->finished.first || x->credits.first || x->n_heap > 0;
}

/* Of the plan's sends, properties that let a transport move a message other than by the receiver's pull: a multicast
 * that is written once for all receivers, or a push to a receiver that has at least as much to do as the sender. Sets
 * `message` of each (mc_message_t). `more`: sends of the same chunks that follow, before anything is written to them
 * and with no other send between. `pushed`: where receivers sum and, where ranks share cores, to a root that gathers from
 * several. */
void mc_hints_find(const mc_plan_t *plan, bool oversubscribed, mc_task_t *task);

/* Asks the kernel to move the bytes that a bound executor accesses into huge pages (MADV_COLLAPSE, Linux 6.1), where
 * peers read them through the kernel: it looks up every page of another process's memory that it copies. Contents are
 * preserved. Only huge pages that lie entirely within a buffer are affected, so that neighbouring memory is not. The
 * time it takes (docs/lab-notes/constants.md) pays off for requests that are started often. Best effort: nothing changes
 * where huge pages are not available, or excluded by madvise(MADV_NOHUGEPAGE) for a buffer, prctl(PR_SET_THP_DISABLE)
 * for a process, or `never` in /sys/kernel/mm/transparent_hugepage/enabled for a machine. */
void mc_huge_pages(const mc_executor_t *x);

#endif
