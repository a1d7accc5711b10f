/* The window rule of pacing: a send waits for an earlier receive of the same rank and phase (pace.h). */
#include "runtime/execute/pace.h"

/* State of one phase during the scan of the plan in program order. */
typedef struct {
    uint32_t receive; /* the next send waits for this receive, as step + 1; 0: for none */
    uint32_t send;    /* the last send that waits for `receive`, as step + 1; 0: none yet */
    size_t bytes;     /* of the receives after `receive`, up to the current step */
} scan_t;

/* Is the step a send or a receive, of at least a byte, over a transport that streams? */
static bool is_paced(const mc_executor_t *x, uint32_t t)
{
    const mc_op_t op = (mc_op_t)x->plan->step[t].op;
    return (mc_op_sends(op) || mc_op_receives(op)) && x->binding->step[t].bytes > 0 &&
           x->lane[x->task[t].lane].peer->transport->streams;
}

static bool is_receive_of(const mc_executor_t *x, uint32_t t, uint8_t phase)
{
    const mc_step_t *const s = &x->plan->step[t];
    return s->phase == phase && mc_op_receives((mc_op_t)s->op) && is_paced(x, t);
}

/* Moves scan->receive to the first receive after which at most `share` bytes of receives follow. */
static void advance(const mc_executor_t *x, scan_t *scan, uint8_t phase, size_t share)
{
    while (scan->bytes > share) {
        uint32_t t = scan->receive; /* the step after scan->receive */
        while (!is_receive_of(x, t, phase))
            t++;
        scan->receive = t + 1;
        scan->send = 0;
        scan->bytes -= x->binding->step[t].bytes;
    }
}

/* Appends a send to the list of sends that wait for scan->receive. The list is in program order, the order in
 * which they start. */
static void append(mc_executor_t *x, scan_t *scan, uint32_t send)
{
    uint32_t *const link = scan->send ? &x->task[scan->send - 1].window_next
                                      : &x->task[scan->receive - 1].window_first;
    x->task[send].waits_for_receive = true;
    *link = scan->send = send + 1;
}

static bool any_streams(const mc_executor_t *x)
{
    for (uint32_t l = 0; l < x->n_sending; l++)
        if (x->lane[l].peer->transport->streams)
            return true;
    return false;
}

void mc_pace_window(mc_executor_t *x)
{
    scan_t scans[MC_PLAN_PHASES] = {{0}};
    if (!any_streams(x))
        return;
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        x->task[t].waits_for_receive = false;
        x->task[t].window_first = x->task[t].window_next = 0;
    }
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        const mc_step_t *const s = &x->plan->step[t];
        scan_t *const scan = &scans[s->phase];
        if (!is_paced(x, t))
            continue;
        if (mc_op_receives((mc_op_t)s->op)) {
            scan->bytes += x->binding->step[t].bytes;
            continue;
        }
        advance(x, scan, s->phase, mc_pace_share(x, s->phase));
        if (scan->receive > 0)
            append(x, scan, t);
    }
}
