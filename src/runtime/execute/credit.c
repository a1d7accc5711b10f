/* Pacing by credits: empty messages by which a receiver requests or confirms messages (pace.h). */
#include "runtime/execute/pace.h"

#include <stddef.h>

static const mc_traffic_t *traffic_of(const mc_executor_t *x, const mc_lane_t *lane)
{
    return &x->plan->traffic[x->plan->step[x->queue[lane->first]].phase];
}

/* Does the receiver request messages? Otherwise it confirms them. */
static bool is_requested(const mc_executor_t *x, const mc_lane_t *lane)
{
    return traffic_of(x, lane)->senders > 1;
}

/* Number of messages, from the first on, that add up to at most `limit` bytes. */
static uint32_t fitting(const mc_executor_t *x, const mc_lane_t *lane, size_t limit)
{
    size_t bytes = 0;
    uint32_t i = 0;
    for (; i < lane->n; i++) {
        bytes += x->binding->step[x->queue[lane->first + i]].bytes;
        if (bytes > limit)
            break;
    }
    return i;
}

/* Does one rank send to one, through ports that others use? A chain has a rule of its own. */
static bool is_pair(const mc_executor_t *x, const mc_traffic_t *traffic)
{
    const bool all_send = !mc_moves[traffic->moves].rooted;
    const int32_t ranks = mc_pacing_ranks(&x->pacing, &x->plan->layout.mesh, traffic->rooted);
    return traffic->senders == 1 && traffic->receivers == 1 && !traffic->passes_on &&
           mc_pacing_pairs(all_send, ranks);
}

/* Which messages of a lane need no credit. Both ends compute it from the lane's messages and the share, and
 * find the same. */
static void find_credits(mc_executor_t *x, mc_lane_t *lane)
{
    lane->n_free = lane->n_allowed = lane->n;
    if (lane->n == 0 || !lane->peer->transport->streams)
        return;
    const mc_traffic_t *const traffic = traffic_of(x, lane);
    const size_t share = mc_pace_share(x, x->plan->step[x->queue[lane->first]].phase);
    if (traffic->senders > 1)
        lane->n_free = fitting(x, lane, share / traffic->senders);
    else if (traffic->receivers > 1 && fitting(x, lane, share / traffic->receivers) < lane->n)
        lane->n_free = 0;
    else if (traffic->passes_on && fitting(x, lane, x->pacing.window) < lane->n)
        lane->n_free =
            0; /* at most a window cannot overflow a queue, and each credit costs a message */
    else if (is_pair(x, traffic) && fitting(x, lane, share) < lane->n)
        lane->n_free = 0;
}

/* State of one phase while the plan is scanned. */
typedef struct {
    uint32_t message; /* after it there is space in the share, as step + 1; 0: from the start */
    uint32_t last;    /* last task that waits for this message, as step + 1 */
    size_t bytes;     /* of the messages after it */
} scan_t;

/* Does this rank count the message against the share of the phase: as the receiver that requests it, or as
 * the sender that gets confirmations? */
static bool is_counted(const mc_executor_t *x, uint32_t t, uint8_t phase)
{
    const mc_step_t *const s = &x->plan->step[t];
    const bool sends = mc_op_sends((mc_op_t)s->op);
    if (s->phase != phase || !(sends || mc_op_receives((mc_op_t)s->op)) ||
        x->binding->step[t].bytes == 0)
        return false;
    const mc_lane_t *const lane = &x->lane[x->task[t].lane];
    return lane->peer->transport->streams &&
           (is_requested(x, lane) ? !sends : sends && lane->n_free < lane->n);
}

/* Advances until `t`, the last message counted, fits in the share or is alone in it. */
static void advance(const mc_executor_t *x, scan_t *scan, uint8_t phase, uint32_t t, size_t share)
{
    while (scan->bytes > share) {
        uint32_t first = scan->message; /* as a step: the next one */
        while (!is_counted(x, first, phase))
            first++;
        if (first == t)
            break;
        scan->message = first + 1;
        scan->last = 0;
        scan->bytes -= x->binding->step[first].bytes;
    }
}

static void append(mc_executor_t *x, scan_t *scan, uint32_t t)
{
    uint32_t *const link = scan->last          ? &x->task[scan->last - 1].credit_next
                           : scan->message > 0 ? &x->task[scan->message - 1].credit_first
                                               : &x->first_request;
    x->task[t].credit_next = *link; /* requests at the start: those of other phases too */
    *link = scan->last = t + 1;
}

static void clear(mc_executor_t *x)
{
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        x->task[t].credit_first = x->task[t].credit_next = 0;
        x->task[t].waits_for_credit = false;
    }
}

static void link_tasks(mc_executor_t *x)
{
    scan_t scans[MC_PLAN_PHASES] = {{0}};
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        const uint8_t phase = x->plan->step[t].phase;
        mc_lane_t *const lane = &x->lane[x->task[t].lane];
        scan_t *const scan = &scans[phase];
        if (!is_counted(x, t, phase))
            continue;
        scan->bytes += x->binding->step[t].bytes;
        advance(x, scan, phase, t, mc_pace_share(x, phase));
        x->task[t].waits_for_credit = lane->bytes_sent && scan->message > 0;
        if (x->task[t].waits_for_credit || (!lane->bytes_sent && lane->next >= lane->n_free))
            append(x, scan, t);
        lane->next++;
    }
}

void mc_pace_credits(mc_executor_t *x)
{
    const bool before = x->n_credits > 0;
    x->first_request = x->n_credits = 0;
    for (uint32_t l = 0; l < x->n_lanes; l++) {
        find_credits(x, &x->lane[l]);
        x->lane[l].next = 0;
        x->n_credits += x->lane[l].n - x->lane[l].n_free;
    }
    if (before || x->n_credits > 0)
        clear(x);
    if (x->n_credits > 0)
        link_tasks(x);
}

/* Credits in flight ---------------------------------------------------------------------------- */

static char no_bytes[1];
static const mc_span_t nothing = {no_bytes, 0};

/* Sends the lane's next credit, or posts the receive for it. Its tag names the receiver of the message as
 * the sender of the credit. */
static void post(mc_executor_t *x, mc_lane_t *lane)
{
    const mc_transport_ops_t *const ops = lane->peer->transport->ops;
    if (x->state != MC_RUNNING)
        return;
    const mc_message_t m = {.tag = lane->credit_tag | mc_tag(0, 0, x->tag_digest) | x->operation,
                            .span = &nothing,
                            .n_spans = 1};
    lane->credit_in_flight = true;
    const int status = lane->bytes_sent ? ops->recv(lane->peer, &m, &lane->credit)
                                        : ops->send(lane->peer, &m, &lane->credit);
    if (status < 0)
        mc_executor_fail(x, status);
    else if (status == MESHCOLL_OK)
        mc_io_end(&lane->credit, MESHCOLL_OK);
}

/* One credit of a lane is in flight at a time. */
static void send_due(mc_executor_t *x, mc_lane_t *lane)
{
    if (lane->n_due == 0 || lane->credit_in_flight)
        return;
    lane->n_due--;
    post(x, lane);
}

static void request(mc_executor_t *x, uint32_t first)
{
    for (uint32_t t = first; t > 0; t = x->task[t - 1].credit_next) {
        mc_lane_t *const lane = &x->lane[x->task[t - 1].lane];
        lane->n_due++;
        send_due(x, lane);
    }
}

void mc_credit_follow(mc_executor_t *x, const mc_task_t *task)
{
    mc_lane_t *const lane = &x->lane[task->lane];
    if (lane->bytes_sent)
        return;
    request(x, task->credit_first);
    if (!is_requested(x, lane) && lane->n_free < lane->n) {
        lane->n_due++;
        send_due(x, lane);
    }
}

void mc_credit_start(mc_executor_t *x)
{
    x->n_left += x->n_credits;
    for (uint32_t l = 0; l < x->n_lanes && x->state == MC_RUNNING; l++) {
        mc_lane_t *const lane = &x->lane[l];
        const bool waits = lane->bytes_sent && lane->n > 0 && is_requested(x, lane);
        lane->n_credited = lane->n_free;
        lane->n_allowed = waits ? lane->n_free : lane->n;
        lane->n_due = 0;
        lane->credit_in_flight = false;
        lane->credit.finished = &x->credits;
        if (lane->bytes_sent && lane->n_credited < lane->n)
            post(x, lane);
    }
    request(x, x->first_request);
}

mc_lane_t *mc_credit_next(mc_executor_t *x)
{
    for (mc_io_t *io; (io = mc_io_pop(&x->credits));) {
        mc_lane_t *const lane = (mc_lane_t *)((char *)io - offsetof(mc_lane_t, credit));
        if (io->status < 0) {
            mc_executor_fail(x, io->status);
            return NULL;
        }
        lane->credit_in_flight = false;
        lane->n_credited++;
        x->n_left--;
        if (!lane->bytes_sent) {
            send_due(x, lane);
            continue;
        }
        lane->n_allowed += lane->n_allowed < lane->n;
        if (lane->n_credited < lane->n)
            post(x, lane);
        return lane;
    }
    return NULL;
}
