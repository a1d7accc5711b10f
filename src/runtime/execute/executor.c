#include "runtime/execute/executor.h"

#include "runtime/execute/pace.h"

#include <string.h>

/* Local work between two polls of the transports. */
enum { TURN_BYTES = 1 << 18 };

static const mc_step_t *step_of(const mc_executor_t *x, uint32_t t)
{
    return &x->plan->step[t];
}

/* Ready local steps: a binary heap ------------------------------------------------------------- */

static void heap_push(mc_executor_t *x, uint32_t t)
{
    uint32_t at = x->n_heap++;
    for (; at > 0 && x->heap[(at - 1) / 2] > t; at = (at - 1) / 2)
        x->heap[at] = x->heap[(at - 1) / 2];
    x->heap[at] = t;
}

static uint32_t heap_pop(mc_executor_t *x)
{
    const uint32_t top = x->heap[0], last = x->heap[--x->n_heap];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < x->n_heap; at = child) {
        if (child + 1 < x->n_heap && x->heap[child + 1] < x->heap[child])
            child++;
        if (x->heap[child] >= last)
            break;
        x->heap[at] = x->heap[child];
    }
    x->heap[at] = last;
    return top;
}

/* Messages ------------------------------------------------------------------------------------- */

static void reduce_message(const mc_binding_t *b, const mc_step_t *s, void *to, const void *from,
                           const void *message, size_t bytes)
{
    const bool first = s->flags & MC_MESSAGE_FIRST;
    mc_reduce(&b->reducer, to, first ? message : from, first ? from : message, bytes / b->element);
}

/* Reduces the next piece of a message as it arrives. */
static void reduce_piece(void *context, mc_io_t *io, const void *piece, size_t bytes)
{
    const mc_executor_t *const x = context;
    const mc_binding_t *const b = x->binding;
    mc_task_t *const task = (mc_task_t *)io;
    const mc_step_t *const step = step_of(x, (uint32_t)(task - x->task));
    const char *message = piece;
    while (bytes > 0) {
        const mc_span_t from = b->from[task->span], to = b->to[task->span];
        const size_t left = to.bytes - task->reduced, n = left < bytes ? left : bytes;
        reduce_message(b, step, (char *)to.at + task->reduced, (char *)from.at + task->reduced,
                       message, n);
        message += n;
        bytes -= n;
        task->reduced = n < left ? task->reduced + n : 0;
        task->span += n == left;
    }
}

static void send_or_recv(mc_executor_t *x, mc_lane_t *lane, uint32_t t)
{
    mc_task_t *const task = &x->task[t];
    const mc_transport_ops_t *const ops = lane->peer->transport->ops;
    mc_message_t m = task->message;
    int status;
    m.tag |= x->operation;
    mc_timeline_mark(x->timeline, t, MC_POSTED);
    if (lane->bytes_sent) {
        *lane->bytes_sent += m.bytes;
        status = ops->send(lane->peer, &m, &task->io);
    } else if (!task->is_staged && step_of(x, t)->op == MC_OP_RECV_REDUCE) {
        const mc_consumer_t consumer = {.take = reduce_piece, .context = x};
        task->span = x->binding->step[t].at;
        task->reduced = 0;
        status = ops->recv_reduce(lane->peer, &m, &consumer, &task->io);
    } else {
        status = ops->recv(lane->peer, &m, &task->io);
    }
    if (status < 0)
        mc_executor_fail(x, status);
    else if (status == MESHCOLL_OK)
        mc_io_end(&task->io, MESHCOLL_OK);
}

static bool can_start(const mc_executor_t *x, const mc_lane_t *lane)
{
    if (lane->next == lane->n_allowed || lane->n_in_flight == lane->window)
        return false;
    const mc_task_t *const task = &x->task[x->queue[lane->first + lane->next]];
    return task->is_staged ? (bool)task->staged.at : task->waits == 0;
}

static void start_next(mc_executor_t *x, mc_lane_t *lane)
{
    const uint32_t t = x->queue[lane->first + lane->next++];
    lane->n_in_flight++;
    if (lane->bytes_sent)
        x->port[lane->port].n_in_flight++;
    send_or_recv(x, lane, t);
}

/* Starts the send that is first in program order, if none is in flight. */
static void pump_port(mc_executor_t *x, uint32_t port)
{
    mc_lane_t *first = NULL;
    if (x->port[port].n_in_flight > 0)
        return;
    for (uint32_t l = 0; l < x->n_sending; l++) {
        mc_lane_t *const lane = &x->lane[l];
        if (lane->port == port && can_start(x, lane) &&
            (!first || x->queue[lane->first + lane->next] < x->queue[first->first + first->next]))
            first = lane;
    }
    if (first)
        start_next(x, first);
}

static void pump(mc_executor_t *x, mc_lane_t *lane)
{
    if (lane->streams)
        pump_port(x, lane->port);
    else
        while (can_start(x, lane))
            start_next(x, lane);
}

/* Assigns free slots to the next steps that need one. */
static void grant_slots(mc_executor_t *x)
{
    while (x->n_free > 0 && x->next_staged < x->n_staged) {
        const uint32_t t = x->staged[x->next_staged++];
        mc_task_t *const task = &x->task[t];
        task->staged.at = x->staging + x->slot[--x->n_free] * x->slot_bytes;
        task->staged.bytes = x->binding->step[t].bytes;
        pump(x, &x->lane[task->lane]);
    }
}

static void return_slot(mc_executor_t *x, mc_task_t *task)
{
    const size_t offset = (size_t)((char *)task->staged.at - x->staging);
    x->slot[x->n_free++] = (uint32_t)(offset / x->slot_bytes);
    task->staged.at = NULL;
}

/* Steps ---------------------------------------------------------------------------------------- */

static void complete(mc_executor_t *x, uint32_t t)
{
    const mc_plan_t *const plan = x->plan;
    x->n_left--;
    mc_timeline_mark(x->timeline, t, MC_ENDED);
    for (uint32_t e = plan->succ_off[t]; e < plan->succ_off[t + 1]; e++) {
        const uint32_t next = plan->succ[e];
        if (--x->task[next].waits > 0)
            continue;
        mc_timeline_mark(x->timeline, next, MC_READY);
        if (x->task[next].is_message && !x->task[next].is_staged)
            pump(x, &x->lane[x->task[next].lane]);
        else
            heap_push(x, next);
    }
}

/* Continues a copy within a turn, as peers wait for the polls between turns. Returns whether all
 * is copied. */
static bool copy_on(mc_executor_t *x, uint32_t t, size_t *turn)
{
    const mc_binding_t *const b = x->binding;
    const mc_bound_t *const bound = &b->step[t];
    mc_task_t *const task = &x->task[t];
    while (task->span < bound->n && *turn < TURN_BYTES) {
        const mc_span_t from = b->from[bound->at + task->span], to = b->to[bound->at + task->span];
        const size_t left = to.bytes - task->reduced, room = TURN_BYTES - *turn;
        const size_t n = left < room ? left : room;
        if (to.at != from.at)
            memcpy((char *)to.at + task->reduced, (char *)from.at + task->reduced, n);
        *turn += n;
        task->reduced = n < left ? task->reduced + n : 0;
        task->span += n == left;
    }
    if (task->span < bound->n)
        return false;
    task->span = 0;
    return true;
}

static void run_local(mc_executor_t *x, uint32_t t)
{
    const mc_binding_t *const b = x->binding;
    const mc_bound_t *const bound = &b->step[t];
    const mc_span_t *const from = &b->from[bound->at], *const to = &b->to[bound->at];
    const char *message = x->task[t].staged.at;
    switch (step_of(x, t)->op) {
    case MC_OP_REDUCE:
        for (uint32_t i = 0; i < bound->n; i++)
            mc_reduce(&b->reducer, to[i].at, from[i].at, to[i].at, to[i].bytes / b->element);
        break;
    case MC_OP_REDUCE_BEHIND:
        for (uint32_t i = 0; i < bound->n; i++)
            mc_reduce(&b->reducer, to[i].at, to[i].at, from[i].at, to[i].bytes / b->element);
        break;
    case MC_OP_RECV_REDUCE:
        for (uint32_t i = 0; i < bound->n; message += to[i++].bytes)
            reduce_message(b, step_of(x, t), to[i].at, from[i].at, message, to[i].bytes);
        break;
    default: /* copied already, or empty */
        break;
    }
    if (x->task[t].is_staged) {
        return_slot(x, &x->task[t]);
        grant_slots(x);
    }
    complete(x, t);
}

/* Releases the sends that waited for this message: for its arrival, or for its receiver to confirm it. */
static void release(mc_executor_t *x, const mc_task_t *message, mc_pace_t rule)
{
    for (uint32_t next = message->first[rule]; next > 0; next = x->task[next - 1].next[rule]) {
        mc_task_t *const send = &x->task[next - 1];
        if (--send->waits > 0)
            continue;
        mc_timeline_mark(x->timeline, next - 1, MC_READY);
        pump(x, &x->lane[send->lane]);
    }
}

static void message_done(mc_executor_t *x, mc_io_t *io)
{
    mc_task_t *const task = (mc_task_t *)io;
    const uint32_t t = (uint32_t)(task - x->task);
    mc_lane_t *const lane = &x->lane[task->lane];
    mc_timeline_mark(x->timeline, t, MC_ARRIVED);
    if (io->status < 0) {
        mc_executor_fail(x, io->status);
        return; /* a step that depends on this message must never start */
    }
    lane->n_in_flight--;
    if (lane->bytes_sent)
        x->port[lane->port].n_in_flight--;
    release(x, task, MC_BY_WINDOW);
    if (x->n_credits > 0)
        mc_credit_follow(x, task);
    if (!task->is_staged) {
        complete(x, t);
    } else if (--task->waits == 0) {
        mc_timeline_mark(x->timeline, t, MC_READY);
        heap_push(x, t);
    }
    pump(x, lane);
}

/* Start, advance, end -------------------------------------------------------------------------- */

static void begin_timeline(const mc_executor_t *x)
{
    mc_timeline_begin(x->timeline);
    for (uint32_t t = 0; t < x->plan->n_steps; t++)
        if (x->task[t].waits == 0)
            mc_timeline_mark(x->timeline, t, MC_READY);
}

static void reset(mc_executor_t *x)
{
    const uint32_t n = x->plan->n_steps;
    x->finished.first = x->credits.first = NULL;
    x->n_heap = x->next_staged = 0;
    x->n_left = n;
    for (mc_lane_t *lane = x->lane; lane < x->lane + x->n_lanes; lane++)
        lane->next = lane->n_in_flight = 0;
    for (mc_task_t *task = x->task; task < x->task + n; task++)
        task->waits = task->at_first;
    for (uint32_t p = 0; p < x->n_ports; p++)
        x->port[p].n_in_flight = 0;
    for (uint32_t i = 0; i < x->n_staged; i++)
        x->task[x->staged[i]].staged.at = NULL;
    x->n_free = x->n_slots;
    for (uint32_t i = 0; i < x->n_slots; i++)
        x->slot[i] = x->n_slots - 1 - i;
    if (x->timeline)
        begin_timeline(x);
}

static bool is_connected(mc_executor_t *x)
{
    while (x->n_connected < x->n_lanes) {
        const mc_peer_t *const peer = x->lane[x->n_connected].peer;
        if (peer->transport->greets && !peer->greeted)
            return false;
        x->n_connected++;
    }
    return true;
}

static void begin(mc_executor_t *x, uint32_t operation)
{
    x->operation = mc_tag(0, operation, 0);
    reset(x);
    mc_binding_begin(x->binding);
    x->state = MC_RUNNING;
    if (x->n_credits > 0)
        mc_credit_start(x);
    grant_slots(x);
    const uint32_t n = x->plan->n_steps;
    for (uint32_t t = 0; t < n; t++) {
        const mc_task_t *const task = &x->task[t];
        if (task->waits > 0)
            continue;
        if (!task->is_message)
            heap_push(x, t);
        else if (task->lane < x->n_sending)
            pump(x, &x->lane[task->lane]);
    }
    /* Receives are posted last: a message that is here already completes at once, and peers wait
     * for what this rank sends. */
    for (uint32_t l = x->n_sending; l < x->n_lanes; l++)
        pump(x, &x->lane[l]);
}

/* Of a run for the first time, or once what it lacked is there. */
static bool is_ready(mc_executor_t *x, uint32_t operation)
{
    const bool ready = x->bound && !x->held && mc_executor_has_reached(x) && is_connected(x);
    x->pending = operation;
    x->state = MC_PENDING;
    if (ready)
        x->reached = NULL;
    return ready;
}

int mc_executor_start(mc_executor_t *x, uint32_t operation)
{
    if (x->state == MC_FAILED)
        return mc_executor_advance(x);
    if (x->state != MC_IDLE && !is_ready(x, operation))
        return MESHCOLL_IN_PROGRESS;
    begin(x, operation);
    return mc_executor_advance(x);
}

static inline bool has_messages(const mc_executor_t *x)
{
    return x->finished.first || x->credits.first;
}

static void complete_messages(mc_executor_t *x)
{
    while (has_messages(x)) {
        for (mc_io_t *io; (io = mc_io_pop(&x->finished));)
            message_done(x, io);
        for (mc_lane_t *lane; x->credits.first && (lane = mc_credit_next(x));) {
            release(x, &x->task[x->queue[lane->first + lane->n_credited - 1]], MC_BY_CREDIT);
            pump(x, lane);
        }
    }
}

static inline void drain(mc_executor_t *x)
{
    size_t turn = 0;
    if (has_messages(x))
        complete_messages(x);
    while (x->n_heap > 0 && turn < TURN_BYTES && x->state == MC_RUNNING) {
        const uint32_t t = x->heap[0];
        const bool copies = step_of(x, t)->op == MC_OP_COPY;
        if (!copies || x->task[t].span + x->task[t].reduced == 0)
            mc_timeline_mark(x->timeline, t, MC_BEGUN);
        if (copies && !copy_on(x, t, &turn))
            return;
        turn += copies ? 0 : x->binding->step[t].bytes;
        heap_pop(x);
        run_local(x, t);
        if (has_messages(x))
            complete_messages(x);
    }
}

static inline int end(mc_executor_t *x)
{
    x->state = MC_IDLE;
    mc_binding_finish(x->binding);
    if (x->timeline)
        x->timeline->ended = mc_now();
    return MESHCOLL_OK;
}

void mc_executor_end(mc_executor_t *x)
{
    end(x);
}

int mc_executor_advance(mc_executor_t *x)
{
    if (x->state == MC_RUNNING) {
        drain(x);
        if (x->n_left == 0 && x->state == MC_RUNNING) {
            if (!x->flushes)
                return end(x);
            x->state = MC_FLUSHING;
        }
    }
    if (x->state == MC_FAILED)
        return x->status;
    if (x->state == MC_PENDING)
        return mc_executor_start(x, x->pending);
    return x->state == MC_IDLE ? MESHCOLL_OK : MESHCOLL_IN_PROGRESS;
}
