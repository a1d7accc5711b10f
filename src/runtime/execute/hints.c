#include "runtime/execute/executor.h"

#include "compose/algorithms/placement.h"

/* Compares the extents of two ranges: from the first chunk to behind the last. */
static bool may_meet(mc_range_t a, mc_range_t b)
{
    return mc_range_begin(a) < mc_range_end(b) && mc_range_begin(b) < mc_range_end(a);
}

/* IN and OUT may be the same memory, so writes to either count. */
static bool may_write_to(const mc_step_t *s, const mc_step_t *send)
{
    return mc_op_writes((mc_op_t)s->op) && (s->dst == MC_SCRATCH) == (send->src == MC_SCRATCH) &&
           may_meet(mc_step_to(s), mc_step_from(send));
}

static bool are_multicast(const mc_step_t *a, const mc_step_t *b)
{
    return a->src == b->src && a->phase == b->phase && a->first == b->first && a->run == b->run &&
           a->nrun == b->nrun && a->stride == b->stride && a->to == b->to && a->peer != b->peer;
}

/* A receiver that sums has more to do than its sender. Where ranks share cores, the one that runs should do the work at
 * hand: all wait for a receiver that has several messages to fetch. */
static bool is_pushed(const mc_traffic_t *phase, bool oversubscribed)
{
    return phase->moves == MESHCOLL_REDUCE || phase->moves == MESHCOLL_REDUCE_SCATTER ||
           phase->moves == MESHCOLL_ALLREDUCE ||
           (oversubscribed && phase->moves == MESHCOLL_GATHER && phase->senders > 1);
}

void mc_hints_find(const mc_plan_t *plan, bool oversubscribed, mc_task_t *task)
{
    const mc_step_t *next = NULL; /* the following send, until something writes to its chunks */
    for (uint32_t t = plan->n_steps; t-- > 0;) {
        const mc_step_t *const s = &plan->step[t];
        if (mc_op_sends((mc_op_t)s->op)) {
            if (next && are_multicast(s, next))
                task[t].message.more = task[next - plan->step].message.more + 1;
            task[t].message.pushed = is_pushed(&plan->traffic[s->phase], oversubscribed);
            next = s;
        } else if (next && may_write_to(s, next)) {
            next = NULL;
        }
    }
}
