#include "runtime/execute/alike.h"

#include "compose/algorithms/placement.h"

/* From the first chunk of a range to behind its last. */
static bool may_meet(mc_range_t a, mc_range_t b)
{
    return a.first < b.first + (b.nrun - 1) * b.stride + b.run &&
           b.first < a.first + (a.nrun - 1) * a.stride + a.run;
}

/* IN and OUT may be the same memory. */
static bool may_write_to(const mc_step_t *s, const mc_step_t *send)
{
    return mc_op_writes((mc_op_t)s->op) && (s->dst == MC_SCRATCH) == (send->src == MC_SCRATCH) &&
           may_meet(mc_step_to(s), mc_step_from(send));
}

static bool are_alike(const mc_step_t *a, const mc_step_t *b)
{
    return a->src == b->src && a->phase == b->phase && a->first == b->first && a->run == b->run &&
           a->nrun == b->nrun && a->stride == b->stride && a->peer != b->peer;
}

/* Who sends to a root that sums has nothing else to do. Where ranks share cores, who runs does what it can: a receiver with
 * several messages to fetch is the one all wait for. */
static bool is_pushed(const mc_traffic_t *phase, bool crowded)
{
    switch ((meshcoll_collective_t)phase->moves) {
    case MESHCOLL_REDUCE:
        return true;
    case MESHCOLL_GATHER:
        return crowded && phase->senders > 1;
    case MESHCOLL_REDUCE_SCATTER:
    case MESHCOLL_ALLREDUCE:
        return crowded;
    default:
        return false;
    }
}

/* A root's core has receivers on it. 4 to 8 ranks on 2 cores scattered 8 MiB without its help in 0.75 to 0.87 of the time.
 * What several are sent alike and is too large for the board is better moved by both: a broadcast of 8 MiB by a tree took
 * 1.03 ms, else 2.03. */
static bool is_unhelped(const mc_traffic_t *phase, bool crowded)
{
    return crowded && phase->moves == MESHCOLL_SCATTER && phase->receivers > 1;
}

void mc_alike_find(const mc_plan_t *plan, bool crowded, mc_task_t *task)
{
    const mc_step_t *next = NULL; /* the send behind, as long as nobody writes to its chunks */
    for (uint32_t t = plan->n_steps; t-- > 0;) {
        const mc_step_t *const s = &plan->step[t];
        if (mc_op_sends((mc_op_t)s->op)) {
            if (next && are_alike(s, next))
                task[t].message.more = task[next - plan->step].message.more + 1;
            task[t].message.pushed = is_pushed(&plan->traffic[s->phase], crowded);
            task[t].message.mutual = !mc_moves[plan->traffic[s->phase].moves].rooted;
            task[t].message.unhelped = is_unhelped(&plan->traffic[s->phase], crowded);
            next = s;
        } else if (next && may_write_to(s, next)) {
            next = NULL;
        }
    }
}
