/* Which messages wait for which by the rules of pacing, and credits in flight (pace.h). */
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

/* State of one phase while the plan is scanned in program order. */
typedef struct {
    uint32_t after; /* what comes next waits for this message, as step + 1; 0: for none */
    uint32_t last;  /* the last that waits for it, as step + 1; 0: none yet */
    size_t bytes;   /* of the messages counted after it */
} scan_t;

static bool receives(const mc_executor_t *x, uint32_t t)
{
    return mc_op_receives((mc_op_t)x->plan->step[t].op);
}

/* Is the step a send or a receive, of at least a byte, over a transport that streams? */
static bool is_paced(const mc_executor_t *x, uint32_t t)
{
    return (receives(x, t) || mc_op_sends((mc_op_t)x->plan->step[t].op)) &&
           x->binding->step[t].bytes > 0 && x->lane[x->task[t].lane].peer->transport->streams;
}

/* Does the window count it? The receives show what the wires have carried. */
static bool is_in_window(const mc_executor_t *x, uint32_t t)
{
    return is_paced(x, t) && receives(x, t);
}

/* Do credits count it: of the receiver that requests it, or of the sender that gets confirmations? */
static bool has_credits(const mc_executor_t *x, uint32_t t)
{
    if (!is_paced(x, t))
        return false;
    const mc_lane_t *const lane = &x->lane[x->task[t].lane];
    return is_requested(x, lane) ? !lane->bytes_sent : lane->bytes_sent && lane->n_free < lane->n;
}

/* Advances until at most a share is counted after scan->after, or `t` alone. */
static void advance(const mc_executor_t *x, scan_t *scan, uint32_t t,
                    bool (*counts)(const mc_executor_t *x, uint32_t t))
{
    const uint8_t phase = x->plan->step[t].phase;
    const size_t share = mc_pace_share(x, phase);
    while (scan->bytes > share) {
        uint32_t first = scan->after; /* as a step: the next one */
        while (x->plan->step[first].phase != phase || !counts(x, first))
            first++;
        if (first == t)
            break;
        *scan = (scan_t){.after = first + 1, .bytes = scan->bytes - x->binding->step[first].bytes};
    }
}

/* Appends `t` to those that wait for scan->after. They are in program order, in which they start. */
static void append(mc_executor_t *x, scan_t *scan, uint32_t t, mc_pace_t rule)
{
    uint32_t *const link = scan->last        ? &x->task[scan->last - 1].next[rule]
                           : scan->after > 0 ? &x->task[scan->after - 1].first[rule]
                                             : &x->first_request;
    x->task[t].next[rule] = *link; /* requests at the start: those of other phases too */
    *link = scan->last = t + 1;
}

static void link_by_window(mc_executor_t *x, scan_t *scan, uint32_t t)
{
    if (receives(x, t)) {
        scan->bytes += x->binding->step[t].bytes;
        return;
    }
    advance(x, scan, t, is_in_window);
    x->task[t].waits_for[MC_BY_WINDOW] = scan->after > 0;
    if (scan->after > 0)
        append(x, scan, t, MC_BY_WINDOW);
}

static void link_by_credit(mc_executor_t *x, scan_t *scan, uint32_t t)
{
    mc_lane_t *const lane = &x->lane[x->task[t].lane];
    if (!has_credits(x, t))
        return;
    scan->bytes += x->binding->step[t].bytes;
    advance(x, scan, t, has_credits);
    x->task[t].waits_for[MC_BY_CREDIT] = lane->bytes_sent && scan->after > 0;
    if (lane->bytes_sent ? scan->after > 0 : lane->next >= lane->n_free)
        append(x, scan, t, MC_BY_CREDIT);
    lane->next++;
}

static void link_tasks(mc_executor_t *x)
{
    scan_t scans[MC_PLAN_PHASES][MC_PACE_RULES] = {{{0}}};
    for (mc_task_t *task = x->task; task < x->task + x->plan->n_steps; task++)
        for (int rule = 0; rule < MC_PACE_RULES; rule++) {
            task->first[rule] = task->next[rule] = 0;
            task->waits_for[rule] = false;
        }
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        scan_t *const scan = scans[x->plan->step[t].phase];
        if (!is_paced(x, t))
            continue;
        link_by_window(x, &scan[MC_BY_WINDOW], t);
        if (x->n_credits > 0)
            link_by_credit(x, &scan[MC_BY_CREDIT], t);
    }
}

void mc_pace(mc_executor_t *x)
{
    bool streams = false;
    x->first_request = x->n_credits = 0;
    for (mc_lane_t *lane = x->lane; lane < x->lane + x->n_lanes; lane++) {
        find_credits(x, lane);
        lane->next = 0;
        x->n_credits += lane->n - lane->n_free;
        streams = streams || lane->peer->transport->streams;
    }
    if (streams)
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
    for (uint32_t t = first; t > 0; t = x->task[t - 1].next[MC_BY_CREDIT]) {
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
    request(x, task->first[MC_BY_CREDIT]);
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
