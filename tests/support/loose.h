/* A sealed plan taken apart, so that a test can spoil what sealing derived. */
#ifndef MC_TESTS_SUPPORT_LOOSE_H
#define MC_TESTS_SUPPORT_LOOSE_H

#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    mc_plan_t plan;
    mc_step_t *step;
    uint32_t *succ_off, *succ, *n_pred;
    int32_t *peer;
} loose_t;

static inline void *copied(const void *from, size_t bytes)
{
    void *const to = malloc(bytes + 1);
    memcpy(to, from, bytes);
    return to;
}

static inline loose_t loose_copy(const mc_plan_t *plan)
{
    const size_t n = plan->n_steps;
    loose_t l = {
        .plan = *plan,
        .step = copied(plan->step, n * sizeof *l.step),
        .succ_off = copied(plan->succ_off, (n + 1) * sizeof *l.succ_off),
        .succ = copied(plan->succ, plan->n_edges * sizeof *l.succ),
        .n_pred = copied(plan->n_pred, n * sizeof *l.n_pred),
        .peer = copied(plan->peer, plan->n_peers * sizeof *l.peer),
    };
    l.plan.step = l.step;
    l.plan.succ_off = l.succ_off;
    l.plan.succ = l.succ;
    l.plan.n_pred = l.n_pred;
    l.plan.peer = l.peer;
    return l;
}

static inline void loose_free(loose_t *l)
{
    free(l->peer);
    free(l->n_pred);
    free(l->succ);
    free(l->succ_off);
    free(l->step);
}

#endif
