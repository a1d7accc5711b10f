#include "runtime/credit.h"

static bool is_credited(const mc_executor_t *x, const mc_lane_t *lane)
{
    if (lane->n == 0 || !lane->peer->transport->streams)
        return false;
    return x->plan->traffic[x->plan->step[x->queue[lane->first]].phase].senders > 1;
}

static size_t bytes_of(const mc_executor_t *x, const mc_lane_t *lane, uint32_t i)
{
    return x->binding->step[x->queue[lane->first + i]].bytes;
}

/* Both ends of a lane know its messages, and find the same: this rank's share of what all may send at once. */
static void open_lane(mc_executor_t *x, mc_lane_t *lane)
{
    lane->open = lane->n;
    if (!is_credited(x, lane))
        return;
    const uint8_t phase = x->plan->step[x->queue[lane->first]].phase;
    const size_t share = mc_executor_ahead(x, phase) / x->plan->traffic[phase].senders;
    size_t bytes = 0;
    for (lane->open = 0; lane->open < lane->n; lane->open++) {
        bytes += bytes_of(x, lane, lane->open);
        if (bytes > share)
            break;
    }
}

/* Of one phase, as the plan is walked through. */
typedef struct {
    uint32_t last;  /* the receive after which there is room, as step + 1; 0: from the start */
    uint32_t asked; /* the last one that is asked for then, alike */
    size_t bytes;   /* of the receives after it */
} window_t;

/* Is it a message of this phase on a lane with credits? */
static bool is_received(const mc_executor_t *x, uint32_t t, uint8_t phase)
{
    const mc_step_t *const s = &x->plan->step[t];
    return s->phase == phase && mc_op_receives((mc_op_t)s->op) && x->binding->step[t].bytes > 0 &&
           is_credited(x, &x->lane[x->task[t].lane]);
}

/* Moves on until `t`, the last in it, fits in or is alone. */
static void make_room(const mc_executor_t *x, window_t *w, uint8_t phase, uint32_t t, size_t ahead)
{
    while (w->bytes > ahead) {
        uint32_t first = w->last; /* as a step: the one after it */
        while (!is_received(x, first, phase))
            first++;
        if (first == t)
            break;
        w->last = first + 1;
        w->asked = 0;
        w->bytes -= x->binding->step[first].bytes;
    }
}

static void ask_after(mc_executor_t *x, window_t *w, uint32_t t)
{
    uint32_t *const before = w->asked      ? &x->task[w->asked - 1].next
                             : w->last > 0 ? &x->task[w->last - 1].asks
                                           : &x->asked_first;
    x->task[t].next = *before; /* of the start: another phase's */
    *before = w->asked = t + 1;
}

void mc_credit_measure(mc_executor_t *x)
{
    window_t window[MC_PLAN_PHASES] = {{0}};
    const bool before = x->n_credits > 0;
    x->asked_first = x->n_credits = 0;
    for (uint32_t l = 0; l < x->n_lanes; l++) {
        mc_lane_t *const lane = &x->lane[l];
        open_lane(x, lane);
        lane->next = 0;
        lane->credited = lane->open;
        x->n_credits += lane->n - lane->open;
    }
    for (uint32_t t = 0; (before || x->n_credits > 0) && t < x->plan->n_steps; t++)
        x->task[t].asks = x->task[t].next = 0;
    for (uint32_t t = 0; x->n_credits > 0 && t < x->plan->n_steps; t++) {
        const uint8_t phase = x->plan->step[t].phase;
        mc_lane_t *const lane = &x->lane[x->task[t].lane];
        if (!is_received(x, t, phase))
            continue;
        window[phase].bytes += x->binding->step[t].bytes;
        make_room(x, &window[phase], phase, t, mc_executor_ahead(x, phase));
        if (lane->next++ >= lane->open)
            ask_after(x, &window[phase], t);
    }
}

/* Credits on their way ------------------------------------------------------------------------------ */

static const mc_span_t nothing;

/* It has the number of the message, and the name of the rank that the message is for. */
static mc_message_t credit_for(const mc_executor_t *x, const mc_lane_t *lane)
{
    const mc_step_t *const s = &x->plan->step[x->queue[lane->first + lane->credited]];
    const int32_t from = lane->bytes_sent ? s->peer : x->plan->rank;
    return (mc_message_t){.tag = mc_tag(from, 0, s->seq) | x->operation | MC_TAG_CREDIT,
                          .span = &nothing,
                          .n_spans = 1};
}

/* Has it come, or gone, at once? */
static bool passes(mc_executor_t *x, mc_lane_t *lane)
{
    const mc_transport_ops_t *const ops = lane->peer->transport->ops;
    const mc_message_t m = credit_for(x, lane);
    const int status = lane->bytes_sent ? ops->recv(lane->peer, &m, &lane->credit)
                                        : ops->send(lane->peer, &m, &lane->credit);
    lane->crediting = status == MESHCOLL_IN_PROGRESS;
    if (status < 0)
        mc_executor_fail(x, status);
    return status == MESHCOLL_OK;
}

static void count(mc_executor_t *x, mc_lane_t *lane)
{
    lane->crediting = false;
    lane->credited++;
    x->n_left--;
}

static void give(mc_executor_t *x, mc_lane_t *lane)
{
    while (lane->owed > 0 && !lane->crediting) {
        lane->owed--;
        if (passes(x, lane))
            count(x, lane);
        else if (!lane->crediting)
            return; /* failed */
    }
}

static void await(mc_executor_t *x, mc_lane_t *lane)
{
    while (lane->credited < lane->n && passes(x, lane))
        count(x, lane);
}

void mc_credit_ask(mc_executor_t *x, uint32_t first)
{
    for (uint32_t t = first; t > 0; t = x->task[t - 1].next) {
        mc_lane_t *const lane = &x->lane[x->task[t - 1].lane];
        lane->owed++;
        give(x, lane);
    }
}

void mc_credit_start(mc_executor_t *x)
{
    x->credits = (mc_io_queue_t){0};
    x->n_left += x->n_credits;
    if (x->n_credits == 0)
        return;
    for (uint32_t l = 0; l < x->n_lanes; l++) {
        mc_lane_t *const lane = &x->lane[l];
        lane->credited = lane->open;
        lane->owed = 0;
        lane->crediting = false;
        lane->credit.finished = &x->credits;
    }
    for (uint32_t l = 0; l < x->n_sending; l++)
        await(x, &x->lane[l]);
    mc_credit_ask(x, x->asked_first);
}

mc_lane_t *mc_credit_next(mc_executor_t *x)
{
    for (mc_io_t *io; (io = mc_io_pop(&x->credits));) {
        mc_lane_t *const lane = (mc_lane_t *)((char *)io - offsetof(mc_lane_t, credit));
        if (io->status < 0) {
            mc_executor_fail(x, io->status);
            return NULL;
        }
        count(x, lane);
        if (lane->bytes_sent) {
            await(x, lane);
            return lane;
        }
        give(x, lane);
    }
    return NULL;
}
