#include "runtime/execute/hold.h"

size_t mc_executor_ahead(const mc_executor_t *x, uint8_t phase)
{
    const int32_t crowd =
        mc_mesh_crowd(&x->plan->layout.mesh, x->wire, x->plan->traffic[phase].rooted);
    return mc_hold_ahead(x->window, crowd * (x->beside > 0 ? x->beside : 1));
}

/* State of one phase while the plan is scanned. */
typedef struct {
    uint32_t last; /* the receive that sends wait for now, as step + 1; 0: none yet */
    uint32_t send; /* the last send that waits for it, as step + 1 */
    size_t ahead;  /* bytes of the receives after it */
} passed_t;

static bool is_streamed(const mc_executor_t *x, uint32_t t)
{
    const mc_op_t op = (mc_op_t)x->plan->step[t].op;
    return (mc_op_sends(op) || mc_op_receives(op)) && x->binding->step[t].bytes > 0 &&
           x->lane[x->task[t].lane].peer->transport->streams;
}

static bool is_received(const mc_executor_t *x, uint32_t t, uint8_t phase)
{
    const mc_step_t *const s = &x->plan->step[t];
    return s->phase == phase && mc_op_receives((mc_op_t)s->op) && is_streamed(x, t);
}

/* Advances `last` until at most `ahead` bytes of receives follow it. */
static void move_on(const mc_executor_t *x, passed_t *p, uint8_t phase, size_t ahead)
{
    while (p->ahead > ahead) {
        uint32_t t = p->last; /* as a step: the next one */
        while (!is_received(x, t, phase))
            t++;
        p->last = t + 1;
        p->send = 0;
        p->ahead -= x->binding->step[t].bytes;
    }
}

/* Appends in program order, so that the first send starts first. */
static void hold(mc_executor_t *x, passed_t *p, uint32_t send)
{
    uint32_t *const before = p->send ? &x->task[p->send - 1].also : &x->task[p->last - 1].frees;
    x->task[send].held = true;
    *before = p->send = send + 1;
}

static bool any_streams(const mc_executor_t *x)
{
    for (uint32_t l = 0; l < x->n_sending; l++)
        if (x->lane[l].peer->transport->streams)
            return true;
    return false;
}

void mc_hold_sends(mc_executor_t *x)
{
    passed_t passed[MC_PLAN_PHASES] = {{0}};
    if (!any_streams(x))
        return;
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        x->task[t].held = false;
        x->task[t].frees = x->task[t].also = 0;
    }
    for (uint32_t t = 0; t < x->plan->n_steps; t++) {
        const mc_step_t *const s = &x->plan->step[t];
        passed_t *const p = &passed[s->phase];
        if (!is_streamed(x, t))
            continue;
        if (mc_op_receives((mc_op_t)s->op)) {
            p->ahead += x->binding->step[t].bytes;
            continue;
        }
        move_on(x, p, s->phase, mc_executor_ahead(x, s->phase));
        if (p->last > 0)
            hold(x, p, t);
    }
}
