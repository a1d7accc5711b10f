/* Plans that ranks of an orbit share: the claims `rotates` of the registry, and what follows from them. */
#include "simulate/sim_world.h"

#include <criterion/criterion.h>
#include <string.h>

static mc_mesh_t mesh_of(const char *text)
{
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse(text, &mesh), 0, "%s: %s", text, meshcoll_last_error());
    return mesh;
}

/* Is `plan` that of the orbit with the peers of `rank`, step by step, with what each waits for? */
static bool is_shifted(const mc_plan_t *plan, const mc_plan_t *first, const mc_orbits_t *o,
                       int32_t rank)
{
    if (plan->n_steps != first->n_steps || plan->n_edges != first->n_edges ||
        memcmp(plan->succ_off, first->succ_off, (plan->n_steps + 1) * sizeof *plan->succ_off) !=
            0 ||
        memcmp(plan->succ, first->succ, plan->n_edges * sizeof *plan->succ) != 0)
        return false;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const mc_step_t *const a = &plan->step[i], *const b = &first->step[i];
        const int32_t peer = b->peer < 0 ? -1 : mc_orbits_shift(o, b->peer, rank, 1);
        if (a->op != b->op || a->phase != b->phase || a->peer != peer || a->seq != b->seq ||
            a->run * a->nrun != b->run * b->nrun)
            return false;
    }
    return true;
}

/* Does every rank of a line have the plan of rank 0, shifted? */
static bool turns(int32_t algorithm, int32_t len)
{
    const mc_mesh_t mesh = {.ndims = 1, .size = len, .dim = {{"x", len}}};
    const mc_orbits_t line = {.n = 1, .digit = {{1, len}}};
    const mc_strategy_t s = {.collective = mc_algorithms[algorithm].collective,
                             .segments = 1,
                             .n_phases = 1,
                             .phase = {{algorithm, {0, 1}}}};
    mc_plan_t *first, *plan;
    bool same = true;
    cr_assert_eq(mc_strategy_plan(&s, &mesh, 0, 0, &first), 0, "%s", meshcoll_last_error());
    for (int32_t r = 1; r < len && same; r++) {
        cr_assert_eq(mc_strategy_plan(&s, &mesh, r, 0, &plan), 0, "%s", meshcoll_last_error());
        same = is_shifted(plan, first, &line, r);
        mc_plan_free(plan);
    }
    mc_plan_free(first);
    return same;
}

Test(orbits, algorithms_rotate_as_the_registry_says)
{
    for (int32_t a = 0; a < mc_n_algorithms; a++) {
        bool all = true;
        if (mc_algorithms[a].plane)
            continue;
        for (int32_t len = 2; len <= 24; len++)
            all = turns(a, len) && all;
        cr_expect_eq(mc_algorithms[a].rotates, all, "%s:%s %s",
                     mc_moves[mc_algorithms[a].collective].name, mc_algorithms[a].name,
                     all ? "rotates" : "does not rotate");
    }
}

static uint64_t compared;
static bool orbits_are_right(void *context, const mc_strategy_t *strategy)
{
    const mc_mesh_t *const mesh = context;
    mc_strategy_t s = *strategy;
    s.segments = 2;
    const mc_simulation_t q = {.mesh = mesh, .strategy = &s};
    mc_orbits_t o;
    cr_assert_eq(mc_orbits_create(&q, &o), 0, "%s", meshcoll_last_error());
    for (int32_t r = 0; r < mesh->size && o.n > 0; r++) {
        char buffer[MC_STRATEGY_TEXT];
        mc_text_t text = mc_text(buffer, sizeof buffer);
        mc_plan_t *plan;
        mc_strategy_print(&s, mesh, &text);
        cr_assert_eq(mc_strategy_plan(&s, mesh, r, 0, &plan), 0, "%s", meshcoll_last_error());
        cr_assert(is_shifted(plan, o.program[o.of[r]].plan, &o, r), "rank %d: %s", r, buffer);
        mc_plan_free(plan);
        compared++;
    }
    mc_orbits_free(&o);
    return true;
}

Test(orbits, plans_are_those_of_their_orbits)
{
    static const char *const meshes[] = {"x=6", "box=3,gpu=4", "box=4,gpu=2", "x=2,y=3,z=2"};
    for (size_t m = 0; m < MC_COUNT(meshes); m++) {
        mc_mesh_t mesh = mesh_of(meshes[m]);
        for (int c = 0; c < MESHCOLL_ALLTOALL + 1; c++)
            if (m < 3 || c == MESHCOLL_ALLGATHER || c == MESHCOLL_ALLTOALL)
                cr_assert_eq(mc_strategy_each((meshcoll_collective_t)c, &mesh, MC_PATHS_COVER,
                                              orbits_are_right, &mesh),
                             0);
    }
    cr_assert_gt(compared, 1000, "%llu", (unsigned long long)compared);
}
