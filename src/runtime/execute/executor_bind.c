/* Sets up an executor: lanes, ports, staging, and whatever is the same for all runs of a
 * binding. */
#include "runtime/execute/executor.h"

#include "runtime/execute/pace.h"

#include <stdlib.h>
#include <string.h>

/* Messages in flight per lane. Sends: enough that the wire never waits for this rank, few enough
 * that the first segments go first. Posted receives cost nothing, and save the copy of an
 * unexpected message. */
enum { SEND_WINDOW = 2, RECV_WINDOW = 16 };

/* STAGING_BYTES limits the slots beyond the minimum of two per side. */
enum { STAGING_BYTES = 1 << 20, ALIGN = 64 };

static const mc_step_t *step_of(const mc_executor_t *x, uint32_t t)
{
    return &x->plan->step[t];
}

static bool is_message(const mc_executor_t *x, uint32_t t)
{
    const mc_op_t op = (mc_op_t)step_of(x, t)->op;
    return (mc_op_sends(op) || mc_op_receives(op)) && x->binding->step[t].bytes > 0;
}

static bool is_staged(const mc_executor_t *x, uint32_t t)
{
    return step_of(x, t)->op == MC_OP_RECV_REDUCE && x->task[t].is_message &&
           (!x->lane[x->task[t].lane].peer->transport->ops->recv_reduce ||
            MC_PIECE_UNIT % x->binding->element != 0);
}

static mc_lane_t lane_of(const mc_wiring_t *w, uint32_t peer, uint8_t phase, bool sends)
{
    const uint64_t all = mc_tag_context(w->context) | mc_tag_phase(phase);
    const uint64_t own = all | mc_tag(w->rank, 0, 0);
    const uint64_t others = all | mc_tag(w->peer[peer]->rank, 0, 0);
    return (mc_lane_t){.peer = w->peer[peer],
                       .bytes_sent = sends ? w->bytes_sent[peer] : NULL,
                       .tag = sends ? own : others,
                       .credit_tag = (sends ? others : own) | MC_TAG_CREDIT,
                       .window = sends ? SEND_WINDOW : RECV_WINDOW};
}

/* Assigns lanes to the peers and phases of one direction that have messages, and each step its
 * lane. `lane` and `task` may be NULL, to count only. `number` is a table by peer and phase,
 * zero on entry and return. Returns the number of lanes, including the first `first`. */
static uint32_t add_lanes(const mc_plan_t *plan, const mc_wiring_t *w, bool sends, uint32_t phases,
                          uint32_t first, uint32_t *number, mc_lane_t *lane, mc_task_t *task)
{
    uint32_t n = first;
    for (uint32_t t = 0; t < plan->n_steps; t++) {
        const mc_step_t *const s = &plan->step[t];
        if (!(sends ? mc_op_sends((mc_op_t)s->op) : mc_op_receives((mc_op_t)s->op)))
            continue;
        const uint32_t peer = mc_plan_peer(plan, s->peer), at = peer * phases + s->phase;
        if (!number[at]) {
            if (lane)
                lane[n] = lane_of(w, peer, s->phase, sends);
            number[at] = ++n;
        }
        if (task)
            task[t].lane = number[at] - 1;
    }
    memset(number, 0, (size_t)plan->n_peers * phases * sizeof *number);
    return n;
}

/* `seen` is a table by peer, zero on entry and return. */
static void find_last(const mc_plan_t *plan, bool sends, uint32_t *seen, mc_task_t *task)
{
    for (uint32_t t = plan->n_steps; t-- > 0;) {
        const mc_step_t *const s = &plan->step[t];
        if (sends ? mc_op_sends((mc_op_t)s->op) : mc_op_receives((mc_op_t)s->op))
            task[t].is_last = seen[mc_plan_peer(plan, s->peer)]++ == 0;
    }
    memset(seen, 0, plan->n_peers * sizeof *seen);
}

static uint32_t phases_of(const mc_plan_t *plan)
{
    uint32_t most = 0;
    for (uint32_t t = 0; t < plan->n_steps; t++)
        most = plan->step[t].phase > most ? plan->step[t].phase : most;
    return most + 1;
}

/* One allocation for all that grows with steps and lanes. The task array is its start. */
static int allocate(mc_executor_t *x)
{
    const size_t n = x->plan->n_steps;
    const size_t bytes =
        n * sizeof(mc_task_t) + x->n_lanes * sizeof(mc_lane_t) + 4 * n * sizeof(uint32_t);
    char *const memory = calloc(1, bytes + 1);
    if (!memory)
        return mc_fail_memory("an executor");
    x->task = (mc_task_t *)memory;
    x->lane = (mc_lane_t *)(x->task + n);
    x->queue = (uint32_t *)(x->lane + x->n_lanes);
    x->heap = x->queue + n;
    x->staged = x->heap + n;
    x->slot = x->staged + n;
    return MESHCOLL_OK;
}

_Static_assert(MC_PLAN_PHASES <= 1 << MC_TAG_PHASE_BITS, "a tag names any phase");

int mc_executor_init(mc_executor_t *x, const mc_plan_t *plan, const mc_wiring_t *wiring)
{
    const uint32_t phases = phases_of(plan);
    uint32_t *const number = calloc((size_t)plan->n_peers * phases + 1, sizeof *number);
    if (!number)
        return mc_fail_memory("an executor");
    mc_executor_t made = {.plan = plan, .state = MC_NEW, .pacing = wiring->pacing};
    made.n_sending = add_lanes(plan, wiring, true, phases, 0, number, NULL, NULL);
    made.n_lanes = add_lanes(plan, wiring, false, phases, made.n_sending, number, NULL, NULL);
    const int status = allocate(&made);
    if (!status) {
        *x = made;
        add_lanes(plan, wiring, true, phases, 0, number, x->lane, x->task);
        add_lanes(plan, wiring, false, phases, x->n_sending, number, x->lane, x->task);
        find_last(plan, true, number, x->task);
        find_last(plan, false, number, x->task);
        mc_hints_find(plan, wiring->oversubscribed, x->task);
        for (uint32_t t = 0; t < plan->n_steps; t++)
            x->task[t].io.finished = &x->finished;
    }
    free(number);
    return status;
}

void mc_executor_free(mc_executor_t *x)
{
    free(x->task);
    *x = (mc_executor_t){0};
}

/* Lists each lane's messages by number; empty messages have no lane. */
static void fill_lanes(mc_executor_t *x)
{
    for (uint32_t l = 0; l < x->n_lanes; l++)
        x->lane[l].n = 0;
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        x->task[t].is_message = is_message(x, t);
        x->task[t].is_staged = is_staged(x, t);
        if (x->task[t].is_message)
            x->lane[x->task[t].lane].n++;
    }
    uint32_t first = 0;
    for (uint32_t l = 0; l < x->n_lanes; l++) {
        x->lane[l].first = first;
        first += x->lane[l].n;
        x->lane[l].n = 0;
    }
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        mc_lane_t *const lane = &x->lane[x->task[t].lane];
        if (x->task[t].is_message)
            x->queue[lane->first + lane->n++] = t;
    }
}

/* Index of the transport's port: a mesh has one transport per dimension at most. */
static uint32_t port_of(mc_executor_t *x, mc_transport_t *t)
{
    uint32_t i = 0;
    while (i < x->n_ports && x->port[i].transport != t)
        i++;
    if (i == x->n_ports)
        x->port[x->n_ports++] = (mc_port_t){.transport = t};
    x->flushes |= t->ops->flush ? t->place : 0;
    return i;
}

/* Bytes of the largest message that is staged. */
static size_t most_staged(const mc_executor_t *x)
{
    size_t most = 0;
    for (uint32_t i = 0; i < x->n_staged; i++) {
        const size_t bytes = x->binding->step[x->staged[i]].bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t mc_executor_measure(mc_executor_t *x, const mc_binding_t *binding)
{
    x->binding = binding;
    x->n_staged = 0;
    fill_lanes(x);
    x->n_ports = 0;
    for (uint32_t l = 0; l < x->n_sending; l++) {
        mc_lane_t *const lane = &x->lane[l];
        if (lane->n > 0)
            lane->port = port_of(x, lane->peer->transport);
        lane->streams = lane->n > 0 && lane->peer->transport->streams;
    }
    mc_pace(x);
    for (uint32_t t = 0; t < x->plan->n_steps; t++)
        if (x->task[t].is_staged)
            x->staged[x->n_staged++] = t;
    x->slot_bytes = (most_staged(x) + ALIGN - 1) / ALIGN * ALIGN;
    const size_t fit = x->slot_bytes ? STAGING_BYTES / x->slot_bytes : 0;
    const size_t least = 2 * (size_t)x->plan->layout.sides; /* both sides progress concurrently */
    const size_t wanted = fit < least ? least : fit;
    x->n_slots = wanted < x->n_staged ? (uint32_t)wanted : x->n_staged;
    return x->n_slots * x->slot_bytes;
}

/* Computes once what is the same for all runs. */
void mc_executor_bind(mc_executor_t *x, char *staging)
{
    x->staging = staging;
    x->bound = true;
    mc_executor_wake(x);
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        const mc_bound_t *const b = &x->binding->step[t];
        const mc_step_t *const s = step_of(x, t);
        mc_task_t *const task = &x->task[t];
        mc_message_t *const m = &task->message;
        task->at_first = x->plan->n_pred[t] + task->is_staged + task->waits_for[MC_BY_WINDOW] +
                         task->waits_for[MC_BY_CREDIT];
        if (!task->is_message)
            continue;
        m->tag = x->lane[task->lane].tag | mc_tag(0, 0, x->tag_digest) |
                 (task->is_last ? MC_TAG_LAST : 0);
        m->span = task->is_staged               ? &task->staged
                  : mc_op_sends((mc_op_t)s->op) ? &x->binding->from[b->at]
                                                : &x->binding->to[b->at];
        m->n_spans = task->is_staged ? 1 : b->n;
        m->bytes = b->bytes;
    }
}
