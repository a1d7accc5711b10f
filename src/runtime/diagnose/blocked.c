#include "runtime/diagnose/blocked.h"

/* The first message of a lane that is not complete; those of a lane complete in order. */
static uint32_t first_left(const mc_lane_t *lane)
{
    return lane->next - lane->n_in_flight;
}

static uint32_t step_at(const mc_executor_t *x, const mc_lane_t *lane, uint32_t message)
{
    return x->queue[lane->first + message];
}

static bool sends(const mc_lane_t *lane)
{
    return lane->bytes_sent;
}

/* Returns the lane with the first incomplete message in program order; NULL: all are complete. */
static const mc_lane_t *find_lane(const mc_executor_t *x)
{
    const mc_lane_t *first = NULL;
    for (const mc_lane_t *l = x->lane; l < x->lane + x->n_lanes; l++)
        if (first_left(l) < l->n &&
            (!first || step_at(x, l, first_left(l)) < step_at(x, first, first_left(first))))
            first = l;
    return first;
}

/* Returns the lane whose next credit belongs to the first message in program order; NULL: no credit
 * is awaited. */
static const mc_lane_t *find_credit(const mc_executor_t *x)
{
    const mc_lane_t *first = NULL;
    for (const mc_lane_t *l = x->lane; x->n_credits > 0 && l < x->lane + x->n_lanes; l++)
        if (l->credit_in_flight && l->n_credited < l->n &&
            (!first || step_at(x, l, l->n_credited) < step_at(x, first, first->n_credited)))
            first = l;
    return first;
}

/* Returns the lane of a message that keeps a port busy; NULL: none does. */
static const mc_lane_t *find_sending(const mc_executor_t *x, const mc_lane_t *waiting)
{
    for (const mc_lane_t *l = x->lane; l < x->lane + x->n_sending; l++)
        if (l->port == waiting->port && l->n_in_flight > 0)
            return l;
    return NULL;
}

static mc_blocked_t at_message(const mc_executor_t *x, const mc_lane_t *lane, uint32_t message,
                               mc_awaited_t awaits)
{
    return (mc_blocked_t){
        .awaits = awaits, .step = step_at(x, lane, message), .peer = lane->peer->rank};
}

/* A send that is first but has not started: flow control holds it back. */
static mc_blocked_t held_back(const mc_executor_t *x, const mc_lane_t *lane)
{
    const uint32_t next = first_left(lane);
    const mc_lane_t *const other = find_sending(x, lane), *const credit = find_credit(x);
    if (lane->next == lane->n_allowed || (!other && !credit))
        return at_message(x, lane, next, MC_AWAITS_CREDIT);
    return other ? at_message(x, other, first_left(other), MC_AWAITS_SEND)
                 : at_message(x, credit, credit->n_credited, MC_AWAITS_CREDIT);
}

static mc_blocked_t no_message(const mc_executor_t *x)
{
    const mc_lane_t *const credit = find_credit(x);
    if (credit)
        return at_message(x, credit, credit->n_credited, MC_AWAITS_CREDIT);
    return (mc_blocked_t){.awaits = MC_AWAITS_WORK, .step = x->plan->n_steps, .peer = -1};
}

static mc_blocked_t find_running(const mc_executor_t *x)
{
    const mc_lane_t *const lane = find_lane(x);
    const uint32_t message = lane ? step_at(x, lane, first_left(lane)) : x->plan->n_steps;
    if (x->n_heap > 0 && x->heap[0] < message)
        return (mc_blocked_t){.awaits = MC_AWAITS_WORK, .step = x->heap[0], .peer = -1};
    if (!lane)
        return no_message(x);
    if (!sends(lane))
        return at_message(x, lane, first_left(lane), MC_AWAITS_RECEIVE);
    return lane->n_in_flight > 0 ? at_message(x, lane, first_left(lane), MC_AWAITS_SEND)
                                 : held_back(x, lane);
}

/* A pending run waits for the first connection that is not greeted. */
static mc_blocked_t find_pending(const mc_executor_t *x)
{
    mc_blocked_t b = {.awaits = MC_AWAITS_COUNTS, .step = x->plan->n_steps, .peer = -1};
    if (!x->bound || x->n_connected >= x->n_lanes)
        return b;
    b.awaits = MC_AWAITS_GREETING;
    b.peer = x->lane[x->n_connected].peer->rank;
    return b;
}

mc_blocked_t mc_blocked_find(const mc_executor_t *x)
{
    if (x->state == MC_RUNNING)
        return find_running(x);
    if (x->state == MC_PENDING)
        return find_pending(x);
    return (mc_blocked_t){.awaits = x->state == MC_FLUSHING ? MC_AWAITS_FLUSH : MC_AWAITS_WORK,
                          .step = x->plan->n_steps,
                          .peer = -1};
}

uint64_t mc_blocked_done(const mc_executor_t *x)
{
    const mc_lane_t *const lane = x->state == MC_RUNNING ? find_lane(x) : NULL;
    if (!lane || lane->n_in_flight == 0)
        return 0;
    const mc_task_t *const task = &x->task[step_at(x, lane, first_left(lane))];
    return task->io.done + task->reduced + task->span;
}
