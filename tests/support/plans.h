/* All ranks' plans of a strategy, for Criterion tests. */
#ifndef MC_TESTS_SUPPORT_PLANS_H
#define MC_TESTS_SUPPORT_PLANS_H

#include "compose/strategy/strategy.h"
#include "plan/verify/world.h"

#include <criterion/criterion.h>

enum { MOST_RANKS = 1024 };

typedef struct {
    int32_t n;
    mc_plan_t *plan[MOST_RANKS];
} plans_t;

typedef struct {
    const char *mesh;
    meshcoll_collective_t collective;
    int32_t root;
    const char *strategy;
} case_t;

static inline mc_world_t world_of(const plans_t *p)
{
    return (mc_world_t){p->n, (const mc_plan_t *const *)p->plan};
}

static inline void plans_make(plans_t *p, const mc_mesh_t *mesh, const mc_strategy_t *strategy,
                              int32_t root)
{
    p->n = mesh->size;
    for (int32_t r = 0; r < p->n; r++)
        cr_assert_eq(mc_strategy_plan(strategy, mesh, r, root, &p->plan[r]), MESHCOLL_OK, "%s",
                     meshcoll_last_error());
}

static inline void plans_of(plans_t *p, const case_t *c)
{
    mc_mesh_t mesh;
    mc_strategy_t strategy;
    cr_assert_eq(mc_mesh_parse(c->mesh, &mesh), MESHCOLL_OK, "%s", meshcoll_last_error());
    cr_assert_eq(mc_strategy_parse(c->strategy, c->collective, &mesh, &strategy), MESHCOLL_OK, "%s",
                 meshcoll_last_error());
    plans_make(p, &mesh, &strategy, c->root);
}

static inline void plans_free(plans_t *p)
{
    for (int32_t r = 0; r < p->n; r++)
        mc_plan_free(p->plan[r]);
}

/* The step that receives message `seq` from `peer`. */
static inline uint32_t receive_of(const mc_plan_t *plan, int32_t peer, uint32_t seq)
{
    uint32_t i = 0;
    while (i < plan->n_steps && (!mc_op_receives((mc_op_t)plan->step[i].op) ||
                                 plan->step[i].peer != peer || plan->step[i].seq != seq))
        i++;
    cr_assert_lt(i, plan->n_steps);
    return i;
}

#endif
