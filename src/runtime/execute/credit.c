#include "runtime/execute/credit.h"

static const mc_traffic_t *traffic_of(const mc_executor_t *x, const mc_lane_t *lane)
{
    return &x->plan->traffic[x->plan->step[x->queue[lane->first]].phase];
}

static bool is_asked(const mc_executor_t *x, const mc_lane_t *lane)
{
    return traffic_of(x, lane)->senders > 1;
}

/* Number of messages, from the first on, that add up to at most `share` bytes. */
static uint32_t fitting(const mc_executor_t *x, const mc_lane_t *lane, size_t share)
{
    size_t bytes = 0;
    uint32_t i = 0;
    for (; i < lane->n; i++) {
        bytes += x->binding->step[x->queue[lane->first + i]].bytes;
        if (bytes > share)
            break;
    }
    return i;
}

/* Which messages of a lane have credits. Both ends compute it from the lane's messages and what
 * may be in flight, and find the same. */
static void open_lane(mc_executor_t *x, mc_lane_t *lane)
{
    lane->open = lane->go = lane->n;
    if (lane->n == 0 || !lane->peer->transport->streams)
        return;
    const mc_traffic_t *const traffic = traffic_of(x, lane);
    const size_t ahead = mc_executor_ahead(x, x->plan->step[x->queue[lane->first]].phase);
    if (traffic->senders > 1)
        lane->open = fitting(x, lane, ahead / traffic->senders);
    else if (traffic->receivers > 1 && fitting(x, lane, ahead / traffic->receivers) < lane->n)
        lane->open = 0;
    else if (traffic->passes_on && fitting(x, lane, x->window) < lane->n)
        lane->open = 0; /* up to a window it cannot pile up, and each credit costs a message */
}

/* State of one phase while the plan is scanned. */
typedef struct {
    uint32_t last;    /* message after which there is room, as step + 1; 0: from the start */
    uint32_t waiting; /* last message that waits for the same */
    size_t bytes;     /* of the messages after `last` */
} window_t;

/* Does this rank count the message against the window of the phase: as the receiver that
 * requests it, or as the sender that gets confirmations? */
static bool is_counted(const mc_executor_t *x, uint32_t t, uint8_t phase)
{
    const mc_step_t *const s = &x->plan->step[t];
    const bool sends = mc_op_sends((mc_op_t)s->op);
    if (s->phase != phase || !(sends || mc_op_receives((mc_op_t)s->op)) ||
        x->binding->step[t].bytes == 0)
        return false;
    const mc_lane_t *const lane = &x->lane[x->task[t].lane];
    return lane->peer->transport->streams &&
           (is_asked(x, lane) ? !sends : sends && lane->open < lane->n);
}

/* Advances the window until `t`, its last message, fits or is alone in it. */
static void make_room(const mc_executor_t *x, window_t *w, uint8_t phase, uint32_t t, size_t ahead)
{
    while (w->bytes > ahead) {
        uint32_t first = w->last; /* as a step: the next one */
        while (!is_counted(x, first, phase))
            first++;
        if (first == t)
            break;
        w->last = first + 1;
        w->waiting = 0;
        w->bytes -= x->binding->step[first].bytes;
    }
}

static void wait_for_room(mc_executor_t *x, window_t *w, uint32_t t)
{
    uint32_t *const before = w->waiting    ? &x->task[w->waiting - 1].next
                             : w->last > 0 ? &x->task[w->last - 1].first
                                           : &x->asked_first;
    x->task[t].next = *before; /* from the start: of other phases too */
    *before = w->waiting = t + 1;
}

static void clear(mc_executor_t *x)
{
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        x->task[t].first = x->task[t].next = 0;
        x->task[t].kept = false;
    }
}

static void link_tasks(mc_executor_t *x)
{
    window_t window[MC_PLAN_PHASES] = {{0}};
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        const uint8_t phase = x->plan->step[t].phase;
        mc_lane_t *const lane = &x->lane[x->task[t].lane];
        window_t *const w = &window[phase];
        if (!is_counted(x, t, phase))
            continue;
        w->bytes += x->binding->step[t].bytes;
        make_room(x, w, phase, t, mc_executor_ahead(x, phase));
        x->task[t].kept = lane->bytes_sent && w->last > 0;
        if (x->task[t].kept || (!lane->bytes_sent && lane->next >= lane->open))
            wait_for_room(x, w, t);
        lane->next++;
    }
}

void mc_credit_measure(mc_executor_t *x)
{
    const bool before = x->n_credits > 0;
    x->asked_first = x->n_credits = 0;
    for (uint32_t l = 0; l < x->n_lanes; l++) {
        open_lane(x, &x->lane[l]);
        x->lane[l].next = 0;
        x->n_credits += x->lane[l].n - x->lane[l].open;
    }
    if (before || x->n_credits > 0)
        clear(x);
    if (x->n_credits > 0)
        link_tasks(x);
}

/* Credits in flight ---------------------------------------------------------------------------- */

static char no_bytes[1];
static const mc_span_t nothing = {no_bytes, 0};

/* Sends or posts the lane's next credit. Its tag has the number of the message, and names the
 * receiver of the message as the sender of the credit. */
static void pass(mc_executor_t *x, mc_lane_t *lane)
{
    const mc_step_t *const s = &x->plan->step[x->queue[lane->first + lane->credited]];
    const mc_transport_ops_t *const ops = lane->peer->transport->ops;
    const int32_t from = lane->bytes_sent ? s->peer : x->plan->rank;
    if (x->state != MC_RUNNING)
        return;
    const mc_message_t m = {.tag = mc_tag(from, 0, s->seq) | x->operation | MC_TAG_CREDIT,
                            .span = &nothing,
                            .n_spans = 1};
    lane->crediting = true;
    const int status = lane->bytes_sent ? ops->recv(lane->peer, &m, &lane->credit)
                                        : ops->send(lane->peer, &m, &lane->credit);
    if (status < 0)
        mc_executor_fail(x, status);
    else if (status == MESHCOLL_OK)
        mc_io_finish(&lane->credit, MESHCOLL_OK);
}

static void give(mc_executor_t *x, mc_lane_t *lane)
{
    if (lane->owed == 0 || lane->crediting)
        return;
    lane->owed--;
    pass(x, lane);
}

static void ask(mc_executor_t *x, uint32_t first)
{
    for (uint32_t t = first; t > 0; t = x->task[t - 1].next) {
        mc_lane_t *const lane = &x->lane[x->task[t - 1].lane];
        lane->owed++;
        give(x, lane);
    }
}

void mc_credit_follow(mc_executor_t *x, const mc_task_t *task)
{
    mc_lane_t *const lane = &x->lane[task->lane];
    if (lane->bytes_sent)
        return;
    ask(x, task->first);
    if (!is_asked(x, lane) && lane->open < lane->n) {
        lane->owed++;
        give(x, lane);
    }
}

void mc_credit_start(mc_executor_t *x)
{
    x->n_left += x->n_credits;
    for (uint32_t l = 0; l < x->n_lanes && x->state == MC_RUNNING; l++) {
        mc_lane_t *const lane = &x->lane[l];
        lane->credited = lane->open;
        lane->go = lane->bytes_sent && lane->n > 0 && is_asked(x, lane) ? lane->open : lane->n;
        lane->owed = 0;
        lane->crediting = false;
        lane->credit.finished = &x->credits;
        if (lane->bytes_sent && lane->credited < lane->n)
            pass(x, lane);
    }
    ask(x, x->asked_first);
}

mc_lane_t *mc_credit_next(mc_executor_t *x)
{
    for (mc_io_t *io; (io = mc_io_pop(&x->credits));) {
        mc_lane_t *const lane = (mc_lane_t *)((char *)io - offsetof(mc_lane_t, credit));
        if (io->status < 0) {
            mc_executor_fail(x, io->status);
            return NULL;
        }
        lane->crediting = false;
        lane->credited++;
        x->n_left--;
        if (!lane->bytes_sent) {
            give(x, lane);
            continue;
        }
        lane->go += lane->go < lane->n;
        if (lane->credited < lane->n)
            pass(x, lane);
        return lane;
    }
    return NULL;
}
