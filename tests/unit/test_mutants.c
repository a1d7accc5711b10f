/* Whatever is done to one step or one dependency of a good world, the verifier finds it. */
#include "plan/verify/verify.h"
#include "support/loose.h"
#include "support/plans.h"
#include "support/program.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void expect_well(const plans_t *p, const char *what)
{
    const mc_world_t world = world_of(p);
    cr_expect_eq(mc_verify(&world, NULL, NULL), MESHCOLL_OK, "%s: %s", what, meshcoll_last_error());
}

static const case_t cases[] = {
    {"x=4", MESHCOLL_ALLREDUCE, 0, "allreduce:ring(x)"},
    {"x=5", MESHCOLL_ALLREDUCE, 0, "allreduce:ring(x)"},
    {"box=2,gpu=3", MESHCOLL_BCAST, 4, "option3"},
    {"x=5", MESHCOLL_GATHER, 3, "gather:mst(x)"},
    {"x=7", MESHCOLL_GATHER, 1, "gather:mst(x)"},
    {"x=4", MESHCOLL_ALLREDUCE, 0, "allreduce:fullmesh(x)"},
    {"x=4", MESHCOLL_BCAST, 1, "bcast:chain(x) segments=3"},
    {"x=4", MESHCOLL_REDUCE, 2, "reduce:chain(x) segments=2"},
    {"x=6", MESHCOLL_SCATTER, 5, "scatter:mst(x)"},
    {"x=4", MESHCOLL_REDUCE_SCATTER, 0, "reduce_scatter:fullmesh(x)"},
    {"x=4", MESHCOLL_ALLREDUCE, 0, "allreduce:doubling(x)"},
    {"x=5", MESHCOLL_ALLREDUCE, 0, "allreduce:doubling(x)"},
    {"x=6", MESHCOLL_REDUCE_SCATTER, 0, "reduce_scatter:halving(x)"},
    {"x=6", MESHCOLL_ALLGATHER, 0, "allgather:doubling(x)"},
    {"x=5", MESHCOLL_ALLGATHER, 0, "allgather:bruck(x)"},
    {"box=2,gpu=2", MESHCOLL_ALLGATHER, 0, "allgather:ring(gpu) allgather:ring(box) segments=2"},
    {"box=2,gpu=2", MESHCOLL_ALLREDUCE, 0,
     "reduce_scatter:ring(gpu) allreduce:mst(box) allgather:ring(gpu)"},
    {"x=4", MESHCOLL_ALLTOALL, 0, "alltoall:pairwise(x)"},
    {"box=2,gpu=3", MESHCOLL_ALLTOALL, 0, "hierarchical"},
    {"x=6", MESHCOLL_ALLTOALL, 0, "alltoall:digits(x)"},
    {"x=5", MESHCOLL_ALLTOALL, 0, "alltoall:bruck(x)"},
    {"x=2,y=2,z=2", MESHCOLL_ALLTOALL, 0,
     "alltoall:pairwise(x) alltoall:pairwise(z) alltoall:pairwise(y)"},
    {"box=3+1", MESHCOLL_ALLREDUCE, 0, "hierarchical"},
    {"box=3+2", MESHCOLL_BCAST, 1, "option3"},
    {"box=3+2", MESHCOLL_REDUCE, 4, "option2"},
    {"box=3+1", MESHCOLL_GATHER, 3, "hierarchical"},
    {"box=2+1", MESHCOLL_SCATTER, 2, "hierarchical"},
    {"box=2+1", MESHCOLL_ALLGATHER, 0, "hierarchical"},
    {"box=2+1", MESHCOLL_REDUCE_SCATTER, 0, "hierarchical"},
    {"box=2+1", MESHCOLL_ALLTOALL, 0, "hierarchical"},
    {"box=3+2", MESHCOLL_ALLTOALL, 0, "hierarchical segments=2"},
    {"box=1+4", MESHCOLL_ALLTOALL, 0, "hierarchical"},
};

typedef struct {
    plans_t *p;
    const char *strategy;
    int32_t rank;
    mc_step_t *step; /* of the mutant; room for one more than the plan has */
    uint32_t n, at;  /* at: the step that is changed */
    uint32_t made;
} mutation_t;

/* The world with this rank's steps in place of its own must not pass. */
static void expect_caught(mutation_t *m, const char *how)
{
    mc_plan_t *const whole = m->p->plan[m->rank];
    mc_plan_t *mutant = NULL;
    m->made++;
    if (mc_seal_steps(whole, m->step, m->n, &mutant))
        return; /* refused before it is a plan */
    m->p->plan[m->rank] = mutant;
    const mc_world_t world = world_of(m->p);
    const int status = mc_verify(&world, NULL, NULL);
    cr_expect_eq(status, MESHCOLL_ERR_PLAN, "%s: rank %d, step %u: %s was not caught", m->strategy,
                 m->rank, m->at, how);
    m->p->plan[m->rank] = whole;
    mc_plan_free(mutant);
}

static void original(mutation_t *m)
{
    const mc_plan_t *const plan = m->p->plan[m->rank];
    m->n = plan->n_steps;
    memcpy(m->step, plan->step, m->n * sizeof *m->step);
}

static void drop(mutation_t *m)
{
    original(m);
    memmove(m->step + m->at, m->step + m->at + 1, (m->n - m->at - 1) * sizeof *m->step);
    m->n--;
    expect_caught(m, "dropping it");
}

static void duplicate(mutation_t *m)
{
    original(m);
    memmove(m->step + m->at + 1, m->step + m->at, (m->n - m->at) * sizeof *m->step);
    m->n++;
    expect_caught(m, "doing it twice");
    original(m);
    m->step[m->n] = m->step[m->at];
    m->n++;
    expect_caught(m, "doing it again at the end");
}

static void change(mutation_t *m, mc_step_t step, const char *how)
{
    original(m);
    m->step[m->at] = step;
    expect_caught(m, how);
}

static void redirect_peer(mutation_t *m, mc_step_t step)
{
    const int32_t peer = step.peer;
    for (int32_t other = 0; other < m->p->n; other++) {
        step.peer = other;
        if (other != peer)
            change(m, step, "another peer");
    }
    if (peer >= 0) {
        step.peer = -1;
        change(m, step, "no peer");
    }
}

static bool writes(const mc_step_t *s, uint32_t chunk)
{
    return mc_range_has(mc_step_to(s), chunk);
}

/* Do two copies as far apart differ in empty chunks only? */
static bool same_copy(const mutation_t *m, const mc_step_t *a, const mc_step_t *b)
{
    const mc_plan_t *const plan = m->p->plan[m->rank];
    const uint32_t limit = mc_plan_part(plan) * mc_plan_parts(plan);
    bool same = a->op == MC_OP_COPY;
    for (uint32_t to = 0; to < limit && same; to++)
        if (writes(a, to) != writes(b, to))
            same = mc_plan_absent(plan, (mc_buffer_t)a->dst, to) &&
                   mc_plan_absent(plan, (mc_buffer_t)a->src, to - a->to + a->first);
    return same;
}

static void redirect_chunks(mutation_t *m, const mc_step_t step)
{
    const mc_op_t op = (mc_op_t)step.op;
    const mc_plan_t *const plan = m->p->plan[0];
    const uint32_t limit = mc_plan_part(plan) * mc_plan_parts(plan);
    for (uint32_t chunk = 0; chunk < limit; chunk++) {
        mc_step_t other = step;
        other.first = chunk;
        if (mc_op_reads(op) && chunk != step.first)
            change(m, other, "reading another chunk");
        other = step;
        other.to = chunk;
        if (mc_op_writes(op) && chunk != step.to)
            change(m, other, "writing another chunk");
        other.first = chunk + step.first - step.to;
        if (mc_op_reads(op) && mc_op_writes(op) && chunk != step.to && other.first < limit &&
            !same_copy(m, &step, &other))
            change(m, other, "another chunk");
    }
}

/* What a broadcast's root has in OUT is what it has in IN, as is a rank's own slice in an allgather:
 * reading it there is no fault. */
static bool same_values(const mutation_t *m, const mc_step_t *step, uint8_t buffer)
{
    const mc_plan_t *const plan = m->p->plan[m->rank];
    const bool own_slice = plan->collective == MESHCOLL_ALLGATHER && step->run * step->nrun == 1 &&
                           step->first == mc_layout_home(&plan->layout, m->rank, 0);
    const bool own_vector = plan->collective == MESHCOLL_BCAST && m->rank == plan->root;
    return buffer == MC_IN && (own_slice || own_vector);
}

static void redirect_buffers(mutation_t *m, const mc_step_t step)
{
    const mc_op_t op = (mc_op_t)step.op;
    for (uint8_t buffer = 0; buffer < MC_BUFFERS; buffer++) {
        mc_step_t other = step;
        other.src = buffer;
        if (mc_op_reads(op) && buffer != step.src && !same_values(m, &step, buffer))
            change(m, other, "reading another buffer");
        other = step;
        other.dst = buffer;
        if (mc_op_writes(op) && buffer != step.dst)
            change(m, other, "writing another buffer");
    }
}

static void redirect_op(mutation_t *m, const mc_step_t step)
{
    for (uint8_t op = 0; op < MC_OPS; op++) {
        mc_step_t other = step;
        other.op = op;
        if (op != step.op)
            change(m, other, "another op");
    }
}

static void shorten(mutation_t *m, mc_step_t step)
{
    const mc_step_t whole = step;
    step.run--;
    if (!same_copy(m, &whole, &step))
        change(m, step, "a chunk less");
    step.run += 2;
    if (!same_copy(m, &whole, &step))
        change(m, step, "a chunk more");
}

static void mutate_step(mutation_t *m)
{
    const mc_step_t step = m->p->plan[m->rank]->step[m->at];
    drop(m);
    duplicate(m);
    redirect_peer(m, step);
    redirect_chunks(m, step);
    redirect_buffers(m, step);
    redirect_op(m, step);
    shorten(m, step);
}

Test(mutants, catches_every_mutation_of_one_step)
{
    for (size_t c = 0; c < MC_COUNT(cases); c++) {
        plans_t p;
        plans_of(&p, &cases[c]);
        expect_well(&p, cases[c].strategy);
        mutation_t m = {.p = &p, .strategy = cases[c].strategy};
        for (m.rank = 0; m.rank < p.n; m.rank++) {
            const uint32_t n = p.plan[m.rank]->n_steps;
            m.step = malloc(((size_t)n + 1) * sizeof *m.step);
            for (m.at = 0; m.at < n; m.at++)
                mutate_step(&m);
            free(m.step);
        }
        cr_expect_gt(m.made, 100);
        plans_free(&p);
    }
}

/* The same steps with one of them twice. */
static mc_plan_t *with_twice(const mc_plan_t *plan, uint32_t at)
{
    mc_step_t *const step = malloc(((size_t)plan->n_steps + 1) * sizeof *step);
    mc_plan_t *mutant = NULL;
    memcpy(step, plan->step, (at + 1) * sizeof *step);
    memcpy(step + at + 1, plan->step + at, (plan->n_steps - at) * sizeof *step);
    cr_assert_eq(mc_seal_steps(plan, step, plan->n_steps + 1, &mutant), MESHCOLL_OK);
    free(step);
    return mutant;
}

Test(mutants, catches_a_message_sent_and_received_twice)
{
    for (size_t c = 0; c < MC_COUNT(cases); c++) {
        plans_t p;
        uint32_t made = 0;
        plans_of(&p, &cases[c]);
        for (int32_t r = 0; r < p.n; r++)
            for (uint32_t i = 0; i < p.plan[r]->n_steps; i++) {
                const mc_step_t s = p.plan[r]->step[i];
                if (!mc_op_sends((mc_op_t)s.op))
                    continue;
                mc_plan_t *const from = p.plan[r], *const to = p.plan[s.peer];
                p.plan[r] = with_twice(from, i);
                p.plan[s.peer] = with_twice(to, receive_of(to, r, s.seq));
                const mc_world_t world = world_of(&p);
                cr_expect_eq(mc_verify(&world, NULL, NULL), MESHCOLL_ERR_PLAN,
                             "%s: rank %d step %u", cases[c].strategy, r, i);
                mc_plan_free(p.plan[s.peer]);
                mc_plan_free(p.plan[r]);
                p.plan[r] = from;
                p.plan[s.peer] = to;
                made++;
            }
        cr_expect_gt(made, 0);
        plans_free(&p);
    }
}

/* Dependencies ----------------------------------------------------------------------------------- */

static void remove_edge(loose_t *l, uint32_t from, uint32_t edge)
{
    l->n_pred[l->succ[edge]]--;
    memmove(l->succ + edge, l->succ + edge + 1, (l->plan.n_edges - edge - 1) * sizeof *l->succ);
    for (uint32_t i = from + 1; i <= l->plan.n_steps; i++)
        l->succ_off[i]--;
    l->plan.n_edges--;
}

static bool path_leads(const mc_plan_t *plan, uint32_t from, uint32_t to)
{
    bool leads = from == to;
    for (uint32_t e = plan->succ_off[from]; e < plan->succ_off[from + 1] && !leads; e++)
        leads = plan->succ[e] <= to && path_leads(plan, plan->succ[e], to);
    return leads;
}

/* A dependency that others imply may go, any other not. Returns how many could not. */
static uint32_t remove_each_edge(plans_t *p, int32_t rank, const char *strategy)
{
    mc_plan_t *const whole = p->plan[rank];
    uint32_t needed = 0;
    for (uint32_t i = 0; i < whole->n_steps; i++)
        for (uint32_t e = whole->succ_off[i]; e < whole->succ_off[i + 1]; e++) {
            loose_t l = loose_copy(whole);
            remove_edge(&l, i, e);
            const bool implied = path_leads(&l.plan, i, whole->succ[e]);
            p->plan[rank] = &l.plan;
            const mc_world_t world = world_of(p);
            cr_expect_eq(mc_verify(&world, NULL, NULL), implied ? MESHCOLL_OK : MESHCOLL_ERR_PLAN,
                         "%s: rank %d: %u before %u", strategy, rank, i, whole->succ[e]);
            needed += implied ? 0 : 1;
            loose_free(&l);
        }
    p->plan[rank] = whole;
    return needed;
}

Test(mutants, catches_every_missing_dependency)
{
    for (size_t c = 0; c < MC_COUNT(cases); c++) {
        plans_t p;
        uint32_t needed = 0;
        plans_of(&p, &cases[c]);
        for (int32_t r = 0; r < p.n; r++)
            needed += remove_each_edge(&p, r, cases[c].strategy);
        cr_expect_gt(needed, 0, "%s", cases[c].strategy);
        plans_free(&p);
    }
}

/* Program order ---------------------------------------------------------------------------------- */

/* Two steps of a rank in each other's place. Where ranks then wait for each other in program order,
 * that is caught; where only that is wrong, by this name. Returns whether it was caught by name. */
static bool swap(plans_t *p, int32_t rank, uint32_t a, uint32_t b, const char *strategy)
{
    mc_plan_t *const whole = p->plan[rank];
    mc_step_t *const step = copied(whole->step, whole->n_steps * sizeof *step);
    mc_plan_t *mutant = NULL;
    bool named = false;
    step[a] = whole->step[b];
    step[b] = whole->step[a];
    if (!mc_seal_steps(whole, step, whole->n_steps, &mutant)) {
        p->plan[rank] = mutant;
        const mc_world_t world = world_of(p);
        const bool wrong = mc_verify(&world, NULL, NULL) != MESHCOLL_OK;
        const bool stuck = !program_completes(&world, MC_PROGRAM_WINDOW);
        named = wrong && strstr(meshcoll_last_error(), "no progress in program order");
        cr_expect(stuck ? wrong : !named, "%s: rank %d, steps %u and %u: %s", strategy, rank, a, b,
                  wrong ? meshcoll_last_error() : "not caught");
        mc_plan_free(mutant);
        p->plan[rank] = whole;
    }
    free(step);
    return named;
}

Test(mutants, catches_swaps_that_break_program_order_by_name)
{
    uint32_t worlds = 0;
    for (size_t c = 0; c < MC_COUNT(cases); c++) {
        plans_t p;
        uint32_t named = 0;
        plans_of(&p, &cases[c]);
        for (int32_t r = 0; r < p.n; r++)
            for (uint32_t a = 0; a < p.plan[r]->n_steps; a++)
                for (uint32_t b = a + 1; b < p.plan[r]->n_steps; b++)
                    named += swap(&p, r, a, b, cases[c].strategy);
        worlds += named > 0;
        plans_free(&p);
    }
    /* elsewhere such swaps also break dependencies or the order of messages, which is found first */
    cr_expect_gt(worlds, 5, "%u", worlds);
}
